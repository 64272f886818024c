"""The error of a handler, as plain values.

An exception runs code of the handler's program when it is read: its properties, its text, even its class may raise or
return anything. So it is read once, in the slot that ran the handler, and never raises there.
"""

import builtins
from collections.abc import Iterable, Iterator
from contextlib import suppress
from errno import errorcode
from operator import attrgetter

from carteiro.errors import CarteiroError, DeliveryFailed
from carteiro.model import Deferred, Rejected, value
from carteiro.policy import classify
from carteiro.tickets.consume.handlers import Permanent

_STATUSES = range(100, 600)
# Where clients of HTTP keep the status of an answer in their errors.
_STATUS_PLACES = (attrgetter("response.status_code"), attrgetter("status"), attrgetter("code"))
# The start of asyncio's message when no address of a host takes a connection.
_SEVERAL = "Multiple exceptions: "
# By identity: a class has its own code, too.
_BUILT_IN = {id(each) for each in vars(builtins).values() if isinstance(each, type)}
# Tickets that fail together fail of the same.
_READ: dict[tuple[object, ...], "HandlerError"] = {}
_MOST_READ = 256


class OutOfTime(CarteiroError, TimeoutError):
    """A handler took longer than its type may."""


@value
class HandlerError:
    """An exception that a handler raised."""

    type: str  # failures are grouped by it
    text: str
    # Those that settings may use: its classes, its code, its errno, the status of an answer.
    # None if it is for good: then it says nothing of others.
    names: frozenset[str]
    outcome: Deferred | Rejected

    @property
    def is_final(self) -> bool:
        """Return True if trying again is pointless."""
        return isinstance(self.outcome, Rejected)


def read_error(error: BaseException) -> HandlerError:
    """Read an exception, whatever its own code does; what cannot be read is left out."""
    if not _is_plain(error):
        return _read(error)
    same = (type(error), classify.message_of(error), getattr(error, "errno", None))
    if (read := _READ.get(same)) is None:
        read = _read(error)
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        if len(read.text) <= classify.LONGEST_REASON:
            _READ[same] = read
    return read


def _is_plain(error: BaseException) -> bool:
    """Return True if only its class, its text and its errno tell it from others; runs no code of others."""
    if id(type(error)) not in _BUILT_IN or error.__dict__:
        return False
    errno = getattr(error, "errno", None)
    return errno is None or type(errno) is int


def _read(error: BaseException) -> HandlerError:
    # Not isinstance: it would ask the error for its class.
    own, failure = type(error), classify.task_error(error)
    is_final = not failure.retryable or issubclass(own, Permanent)
    type_ = failure.code if issubclass(own, DeliveryFailed) else classify.name_of(error)
    if issubclass(own, OutOfTime):
        type_ = "Timeout"
    return HandlerError(
        type=type_,
        text=classify.message_of(error),
        names=frozenset() if is_final else frozenset({type_, *_names_of(error)}),
        outcome=Rejected(failure) if is_final else Deferred(failure),
    )


def _names_of(error: BaseException) -> set[str]:
    names: set[str] = set()
    for read in (_of_classes, _of_status, _of_os):
        with suppress(BaseException):
            names.update(map(str.__str__, read(error)))
    return names


def _of_classes(error: BaseException) -> Iterable[str]:
    return [each.__name__ for each in type(error).__mro__]


def _of_status(error: BaseException) -> Iterable[str]:
    if _is_plain(error):
        return []  # most errors: they have no status, and a search would cost more than all the rest
    for place in _STATUS_PLACES:
        with suppress(BaseException):
            status = place(error)
            if isinstance(status, int) and status in _STATUSES:
                return [f"HTTP_{int(status)}"]
    return []


def _of_os(error: BaseException) -> Iterator[str]:
    if isinstance(error, OSError):
        if error.errno is None and classify.message_of(error).startswith(_SEVERAL):
            yield "ConnectionError"
        yield errorcode.get(error.errno or 0, "")
