"""Errors of the command line in plain words: wrong values, and the names of options instead of fields."""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup

from carteiro.cli.exit_codes import WrongUse
from carteiro.email.wording import in_plain_words
from carteiro.errors import FieldError, InvalidMessage

_CAPITAL = re.compile(r"(?=[A-Z])|_")
_NAMES = {
    "allowed_networks": "--network",
    "default_from": "--from",
    "from_domains": "--from-domain",
    "id": "TENANT",
    "idempotency_key": "--key",
    "rate_per_second": "--rate",
    "scheduledAt": "--at",
    "tags": "--tag",
    "type": "TYPE",
}


class PlainGroup(TyperGroup):
    """The root of all commands; says what is wrong with the value of an option without pydantic's words."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as Typer declares it
        """Run the command."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValidationError):
                error.message = _words(error.__cause__)
            raise


def without_panels(command: Any) -> Any:  # noqa: ANN401 - as Typer makes it
    """A command or group whose commands have no panels in their help: these cut off long options at 80 columns."""
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            without_panels(each)
    elif isinstance(command, TyperCommand):
        command.rich_markup_mode = None
    return command


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    own, prefix = first["msg"], "Value error, "  # what Typer found, such as a choice that is none
    return own.removeprefix(prefix) if own.startswith(prefix) else in_plain_words(first)


@contextmanager
def faults_by_option(given: Collection[str] | None = None) -> Iterator[None]:
    """Name the fields of an `InvalidMessage` by their options: all, or the ``given`` ones; others came from a file."""
    try:
        yield
    except InvalidMessage as error:
        raise WrongUse(by_option(error.fields, given)) from None


def by_option(faults: Iterable[FieldError], given: Collection[str] | None = None) -> str:
    """The faults as one text."""
    return "; ".join(
        f"{each.field if given is not None and _top(each.field) not in given else option_of(each.field)}"
        f": {each.message}"
        for each in faults
    )


def option_of(field: str) -> str:
    """The option that sets a field: ``replyTo`` is ``--reply-to``."""
    name = _top(field)
    return _NAMES.get(name) or f"--{_CAPITAL.sub('-', name).lower()}"


def _top(field: str) -> str:
    return field.partition(".")[0]
