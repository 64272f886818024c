"""What is done with tickets: a function for each type, or an address that they are posted to."""

import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias, TypeVar

from carteiro.errors import CarteiroError, ConfigError
from carteiro.model import ZERO, value
from carteiro.policy.retry import PRESETS, PresetName, RetryPolicy
from carteiro.tickets.ticket import TaskType, Ticket, is_fit

Function: TypeAlias = Callable[[Ticket], Awaitable[object]]
_F = TypeVar("_F", bound=Function)


class Permanent(CarteiroError):
    """Raise it from a handler when trying again is pointless: the ticket becomes a dead letter at once."""


@value
class Handler:
    """How tickets of one type are worked on; None means: as the settings have it for all."""

    type: TaskType
    function: Function
    time_limit: timedelta | None = None
    concurrency: int | None = None
    policy: RetryPolicy | None = None


class Tickets:
    """The handlers of a program, by type."""

    def __init__(self) -> None:
        self._handlers: dict[TaskType, Handler] = {}

    def handler(
        self,
        type: TaskType,
        *,
        time_limit: timedelta | None = None,
        concurrency: int | None = None,
        retry: RetryPolicy | PresetName | None = None,
    ) -> Callable[[_F], _F]:
        """Have an async function called with each ticket of this type.

        It returns: the ticket is done. It raises: the ticket failed, and is tried again as ``retry`` says
        (a policy, or the name of a preset). It may be called more than once with the same ticket, at
        times by two workers: ``ticket.id`` and ``ticket.attempt`` help to tell.
        """
        policy = _policy(type, retry)

        def add(function: _F) -> _F:
            self.add(Handler(type, function, time_limit, concurrency, policy))
            return function

        return add

    def add(self, handler: Handler) -> None:
        """Take one more; ValueError on what makes no sense."""
        if not is_fit(handler.type):
            raise ValueError(f"{handler.type!r} can be no type of a ticket")
        if handler.type in self._handlers:
            raise ValueError(f"there is a handler for {handler.type} already")
        if not _is_async(handler.function):
            raise ValueError(f"the handler for {handler.type} must be an async function")
        if handler.time_limit is not None and handler.time_limit <= ZERO:
            raise ValueError(f"the time limit for {handler.type} must be above 0")
        if handler.concurrency is not None and handler.concurrency < 1:
            raise ValueError(f"the concurrency for {handler.type} must be 1 or more")
        self._handlers[handler.type] = handler

    def __iter__(self) -> Iterator[Handler]:
        """All of them, in the order they were added."""
        return iter(self._handlers.values())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._handlers)


def _policy(type: TaskType, retry: RetryPolicy | PresetName | None) -> RetryPolicy | None:
    if not isinstance(retry, str):
        return retry
    if retry not in PRESETS:
        raise ValueError(f"retry of {type} should be a policy, or one of {', '.join(PRESETS)}")
    return PRESETS[retry]


DEFAULT = Tickets()
handler = DEFAULT.handler


def load_app(name: str) -> Tickets:
    """The handlers of ``package.module`` or ``package.module:variable``, found as Python finds it here."""
    module_name, _, variable = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ValueError as error:  # what a handler must not be
        raise ConfigError(f"--app {name}: {error}") from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(f"--app {name}: there is no module {error.name} here") from None
    found = getattr(module, variable, None) if variable else DEFAULT
    if not isinstance(found, Tickets):
        raise ConfigError(f"--app {name}: {variable} is no carteiro.tickets.Tickets")
    if not len(found):
        raise ConfigError(f"--app {name}: no handler is there; {_hint(module_name, vars(module))}")
    return found


def _hint(module: str, variables: Mapping[str, object]) -> str:
    own = [name for name, each in variables.items() if isinstance(each, Tickets)]
    return f"did you mean {module}:{own[0]}?" if own else 'write @tickets.handler("TYPE")'


def with_urls(
    tickets: Tickets, post: Callable[[str], Function], urls: Mapping[str, str]
) -> Tickets:
    """The handlers, and for each type with an address one that posts to it."""
    for type_, url in urls.items():
        try:
            tickets.add(Handler(type_, post(url)))
        except ValueError as error:
            raise ConfigError(f"ticket_urls.{type_}: {error}") from None
    return tickets


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object that is called like one
    )
