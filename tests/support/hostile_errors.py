"""Exceptions that do harm when they are read: each by a name, made anew for each use."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from carteiro.errors import DeliveryFailed
from support.builders import a_failure


class Panic(BaseException):
    """As libraries in other languages raise them."""


def _panic(*_: object) -> NoReturn:
    raise Panic


class _Text(str):
    """A text with code of its own."""

    __slots__ = ()
    __getitem__ = __len__ = __format__ = __str__ = startswith = isprintable = _panic
    __hash__ = __eq__ = _panic


class _Number(int):
    __eq__ = __hash__ = __index__ = __format__ = _panic


class _Nameless(type):
    __name__ = __mro__ = property(_panic)


def _error(base: type[BaseException] = Exception, /, **members: Any) -> Callable[[], BaseException]:
    """Make errors of a class with these members."""
    return type("Hostile", (base,), members)


def _cancel(_: object) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "cancelled its reader"


_BROKEN = property(_panic)
_UNNAMED = _Nameless("Hostile", (Exception,), {})

HOSTILE: Mapping[str, Callable[[], BaseException]] = {
    "is not an Exception": Panic,
    "text panics": _error(__str__=_panic, __repr__=_panic),
    "text panics, is not an Exception": _error(BaseException, __str__=_panic),
    "text is not a text": _error(__str__=lambda _: 5),
    "text has its own code": _error(__str__=lambda _: _Text("harm")),
    "text cancels its reader": _error(__str__=_cancel),
    "text is its own argument": lambda: ValueError(_Text("harm")),
    "response panics": _error(response=_BROKEN),
    "status panics": _error(status=_BROKEN),
    "code panics": _error(code=_BROKEN),
    "every member panics": _error(__getattribute__=_panic),
    "status is an odd number": _error(status=_Number(503), code=_Number(503)),
    "errno is a list": lambda: OSError(["a"], "b"),
    "errno panics": _error(OSError, errno=_BROKEN),
    "class panics": _error(__class__=_BROKEN),
    "class has no name": _UNNAMED,
    "failure panics": _error(DeliveryFailed, failure=_BROKEN, __init__=lambda _: None),
    "failure is none": _error(DeliveryFailed, failure=None, __init__=lambda _: None),
    "failure has no code": lambda: DeliveryFailed(replace(a_failure("X"), code=None)),  # type: ignore[arg-type]
    "failure has an odd reason": lambda: DeliveryFailed(replace(a_failure("X"), reason=_Text("x"))),
}
