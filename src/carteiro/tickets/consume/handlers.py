"""Handlers of tickets: a function for each type, or an address that they are posted to."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, TypeVar

from carteiro.errors import CarteiroError, ConfigError
from carteiro.model import ZERO, value
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.tickets.ticket import TaskType, Ticket, is_fit

Function: TypeAlias = Callable[[Ticket], Awaitable[object]]
_OURS = frozenset({__file__, importlib.__file__})
_F = TypeVar("_F", bound=Function)


class Permanent(CarteiroError):
    """Raise it from a handler when trying again is pointless: the ticket becomes a dead letter at once."""


@value
class Handler:
    """The handler of one type; None means: as the settings have it for all.

    ``preset`` is the name of a retry preset that only the settings know.
    """

    type: TaskType
    function: Function
    time_limit: timedelta | None = None
    concurrency: int | None = None
    policy: RetryPolicy | None = None
    preset: str | None = None


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
        retry: RetryPolicy | str | None = None,
    ) -> Callable[[_F], _F]:
        """Have an async function called with each ticket of this type.

        It returns: the ticket is done. It raises: the ticket failed, and is tried again as ``retry`` says
        (a policy, or the name of a preset, be it one of the settings). It may be called more than once with
        the same ticket, at times by two workers: ``ticket.id`` and ``ticket.attempt`` help to tell.
        """
        policy = PRESETS.get(retry) if isinstance(retry, str) else retry
        preset = retry if isinstance(retry, str) and policy is None else None

        def add(function: _F) -> _F:
            self.add(Handler(type, function, time_limit, concurrency, policy, preset))
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

    def resolve(self, presets: Mapping[str, RetryPolicy]) -> None:
        """Look up the presets that handlers name; ValueError on an unknown one."""
        for type_, each in self._handlers.items():
            if each.preset is None:
                continue
            if each.preset not in presets:
                known = ", ".join(presets)
                raise ValueError(f"retry of {type_} should be a policy, or one of {known}")
            self._handlers[type_] = replace(each, policy=presets[each.preset], preset=None)

    def __iter__(self) -> Iterator[Handler]:
        """All of them, in the order they were added."""
        return iter(self._handlers.values())

    def __len__(self) -> int:
        """Count the handlers."""
        return len(self._handlers)


DEFAULT = Tickets()
handler = DEFAULT.handler


def load_app(name: str, presets: Mapping[str, RetryPolicy] = PRESETS) -> Tickets:
    """The handlers of ``package.module`` or ``package.module:variable``, found as Python finds it here.

    ``presets`` are those that they may name.
    """
    module_name, _, variable = name.partition(":")
    _refuse_path(name, module_name)
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    module = _imported(name, module_name)
    found = getattr(module, variable, None) if variable else DEFAULT
    hint = _hint(module_name, vars(module))
    if not isinstance(found, Tickets):
        raise ConfigError(f"--app {name}: {variable} is not a carteiro.tickets.Tickets; {hint}")
    if not len(found):
        raise ConfigError(f"--app {name}: no handler is there; {hint}")
    try:
        found.resolve(presets)
    except ValueError as error:
        raise ConfigError(f"--app {name}: {error}") from None
    return found


def _refuse_path(name: str, module: str) -> None:
    if all(part.isidentifier() for part in module.split(".")) and not module.endswith(".py"):
        return
    parts = module.removesuffix(".py").replace("/", ".").strip(".").split(".")
    meant = ".".join(part for part in parts if part.isidentifier())
    hint = f"; did you mean {name.replace(module, meant)}?" if meant else ""
    raise ConfigError(f"--app {name}: name a module as Python imports it, not a file{hint}")


def _imported(name: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(f"--app {name}: there is no module {error.name} here") from None
        raise ConfigError(_failed(name, error)) from error
    except Exception as error:  # whatever a module does
        raise ConfigError(_failed(name, error)) from error


def _failed(name: str, error: Exception) -> str:
    """A sentence, then where it was, as Python tells it: in the user's files, not in ours or in the import's."""
    frames = traceback.extract_tb(error.__traceback__)
    if frames[-1].filename == __file__:  # what a handler must not be: it says all itself
        return f"--app {name}: {error}"
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith("<frozen importlib") and frame.filename not in _OURS
    ]
    told = [*traceback.format_list(own), *traceback.format_exception_only(error)]
    return f"--app {name}: it cannot be imported: {error}\n{''.join(told).rstrip()}"


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
