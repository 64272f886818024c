"""Commands on a store: open it, work, print, report errors."""

import asyncio
import functools
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import typer

from carteiro.cli.exit_codes import ExitCode, NotFound, NotNow, WrongUse, exit_code_of
from carteiro.cli.options import AsJson, ConfigFile, QueueUrl, StoreUrl
from carteiro.cli.printing import Printer, printable
from carteiro.config import Settings, load
from carteiro.errors import CarteiroError, ConfigError
from carteiro.model import Tenant, TenantId, Via, value
from carteiro.ports import Backend
from carteiro.providers.choice import remember_real
from carteiro.runtime.acting import act_as, on_this_machine
from carteiro.stores.open import open_backend, store_exists

Work: TypeAlias = Callable[..., Awaitable[None]]
Command: TypeAlias = Callable[..., None]
Function = TypeVar("Function", bound=Command)
Group = TypeVar("Group")

_COMMON = "common_options"  # a name that no option has
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """The options that name a store."""

    config: ConfigFile = None
    store: StoreUrl = None
    queue: QueueUrl = None

    def settings(self, **flags: object) -> Settings:
        """The settings, with these options and other flags by their keys."""
        given = {"store": self.store, "queue": self.queue} | flags
        return load(file=self.config, overrides=given, origin=_option)

    def shared_settings(self, **flags: object) -> Settings:
        """The same, for a store that other processes can open, too."""
        settings = self.settings(**flags)
        refuse_memory(settings)
        return settings


@dataclass(frozen=True)
class Common(Place):
    """The options of every command that works on a store and prints."""

    as_json: AsJson = False

    @property
    def out(self) -> Printer:
        """A printer for people or programs, as asked."""
        return Printer(as_json=self.as_json)


@value
class Desk:
    """An open store with its settings, and a way to print."""

    backend: Backend
    settings: Settings
    out: Printer

    async def remember_provider(self) -> None:
        """Before mail is accepted or redriven: no worker may give it to the sandbox if a real provider is set here."""
        await remember_real(self.settings, self.backend.marks)

    async def known_tenant(self, name: str) -> Tenant:
        """The tenant of this name; `NotFound` if there is none."""
        [tenant] = await self.backend.tenants.find([TenantId(name)])
        return _known(tenant, name)

    async def changed_tenant(self, name: str, changed: Callable[[Tenant], Tenant]) -> Tenant:
        """The tenant of this name after a change of what is stored; `NotFound` if there is none."""
        return _known(await self.backend.tenants.change(TenantId(name), changed), name)

    async def tenant_asked_for(self, name: str | None) -> TenantId | None:
        """The tenant that a list is restricted to, or None; `NotFound` if there is no such tenant."""
        return None if name is None else (await self.known_tenant(name)).id


def _known(tenant: Tenant | None, name: str) -> Tenant:
    if tenant is None:
        raise NotFound(
            f"there is no tenant {name!r}: carteiro tenant ls lists all, tenant add creates one"
        )
    return tenant


def at_a_desk(work: Work) -> Command:
    """Make a command from a coroutine function that takes a `Desk`: adds the `Common` options.

    A parameter of a dataclass type stands for the options in its fields, so that commands
    can share them. A missing store is an error.
    """
    return _command(work, makes_store=False)


def at_a_new_desk(work: Work) -> Command:
    """As `at_a_desk`, but creates a missing store."""
    return _command(work, makes_store=True)


class DeskCommands(typer.Typer):
    """A group of commands that take a `Desk`."""

    def __init__(self, says: str) -> None:
        super().__init__(help=says, no_args_is_help=True)

    def at_a_desk(
        self, name: str | None = None, *, makes_store: bool = False
    ) -> Callable[[Work], Command]:
        """Add a command, made as by `at_a_desk`; with ``makes_store`` as by `at_a_new_desk`."""
        return lambda work: self.command(name)(_command(work, makes_store=makes_store))


def _command(work: Work, *, makes_store: bool) -> Command:
    def begin(common: Common, options: Mapping[str, object]) -> None:
        settings = common.shared_settings()
        if not makes_store:
            refuse_missing(settings)

        async def at_a_desk() -> None:
            act_as(on_this_machine(Via.CLI))
            # A command in another folder has other settings: they must not apply to all workers.
            async with open_backend(settings, governs=False) as backend:
                await work(Desk(backend, settings, common.out), **options)

        asyncio.run(at_a_desk())

    return command_of(work, Common, begin)


def command_of(
    work: Work, common: type[Group], begin: Callable[[Group, Mapping[str, object]], None]
) -> Command:
    """A command with the options of the work, after its first parameter, and the ``common`` ones.

    It gets the common ones separately, and the options of a group as one value.
    """
    own = list(inspect.signature(work).parameters.values())[1:]

    @functools.wraps(work)
    def command(**options: Any) -> None:  # noqa: ANN401 - those of the work
        begin(options.pop(_COMMON), options)

    shared = inspect.Parameter(_COMMON, inspect.Parameter.KEYWORD_ONLY, annotation=common)
    return grouped(_with_parameters(command, [*own, shared]))


def grouped(work: Command) -> Command:
    """Make a command from a function: a parameter of a dataclass type stands for the options in its fields."""
    own = inspect.signature(work).parameters.values()
    groups = {each.name: each.annotation for each in own if _is_group(each.annotation)}

    @functools.wraps(work)
    def command(**options: Any) -> None:  # noqa: ANN401 - those of the work
        taken = {name: _taken(group, options) for name, group in groups.items()}
        work(**options, **taken)

    options = [_options_of(each.annotation) if each.name in groups else [each] for each in own]
    return told(_with_parameters(command, list(chain.from_iterable(options))))


def _option(key: str) -> str:
    return f"--{key.rpartition('.')[2]}"


def _is_group(annotation: object) -> bool:
    return is_dataclass(annotation)


def _taken(group: type[Group], options: dict[str, Any]) -> Group:
    """The options of a group, removed from all options."""
    return group(**{each.name: options.pop(each.name) for each in _options_of(group)})


def _options_of(group: type[object]) -> list[inspect.Parameter]:
    return list(inspect.signature(group).parameters.values())


def _with_parameters(command: Command, parameters: Sequence[inspect.Parameter]) -> Command:
    """The same command, with these parameters on the command line."""
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    # Set, not declared: this is what Typer reads.
    command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in named}
    return command


def told(command: Function) -> Function:
    """The same command; an error is one line on stderr and an exit code, not a traceback."""

    @functools.wraps(command)
    def safe(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - those of the command
        try:
            _refuse_broken(options)
            command(*arguments, **options)
        except CarteiroError as error:
            lines = str(error).splitlines()
            sys.stderr.write("carteiro: " + "\n".join(map(printable, lines)) + "\n")
            raise typer.Exit(exit_code_of(error)) from error

    return safe  # type: ignore[return-value]


def _refuse_broken(options: Mapping[str, object]) -> None:
    """Reject arguments that are not UTF-8: they contain surrogates, which no store can hold."""
    for name, given in options.items():
        for each in given if isinstance(given, list) else [given]:
            if isinstance(each, str) and _SURROGATE.search(each):
                raise WrongUse(f"{name.replace('_', '-')} is not valid UTF-8: {each!r}")


def refuse_memory(settings: Settings) -> None:
    """The temporary store of another process cannot be reached from here."""
    if settings.store.startswith("memory:"):
        raise ConfigError(
            f"store = {settings.store!r} (from {settings.origin('store')}) is for one process: "
            "use sqlite:///FILE or postgresql://HOST/DATABASE, which other processes can open"
        )


def refuse_missing(settings: Settings, named_by: str = "--store or CARTEIRO_STORE") -> None:
    """Reject a store that does not exist: a mistyped file must not be created."""
    if not store_exists(settings):
        raise NotFound(
            f"there is no store at {settings.store} (from {settings.origin('store')}): "
            f"carteiro up creates one; {named_by} names another"
        )


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation; without a terminal, ``--yes`` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotNow(f"{question} There is no terminal to confirm on: add --yes")
    if not typer.confirm(question, err=True):
        raise typer.Exit(ExitCode.REFUSED)
