"""Providers, and the point at which they take a message."""

import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from carteiro.errors import DeadlinePassed
from carteiro.model import Category, Failure, MessageId, Outcome, TenantId, value

_SECOND = timedelta(seconds=1)
_WAITS = "mail waits and is retried"


class Handover:
    """The point of no return of one provider call.

    It is made before `declare`, with a deadline on the monotonic clock, if calls have a limit. The provider
    calls `begin` just before the first byte that could hand the message over. Before `begin` nothing was
    handed over; after it, a call without an answer is in doubt. If the answer may take longer than the
    call, the provider calls `await_reply`, and the worker extends its hold. While all connections are in
    use the call `is_queued`: a call that ends then was never made.
    """

    __slots__ = ("_moved", "awaits_reply", "begun", "deadline", "is_queued")

    def __init__(self, limit: timedelta | None) -> None:
        self.deadline = math.inf
        if limit is not None:
            self.deadline = time.monotonic() + limit / _SECOND
        self.begun = False
        self.awaits_reply = False
        self.is_queued = False
        self._moved: Callable[[float], None] | None = None

    def begin(self) -> None:
        """Pass the last check: a process that slept past its deadline must not deliver."""
        if time.monotonic() >= self.deadline:
            raise DeadlinePassed
        self.begun = True

    def await_reply(self, limit: timedelta) -> None:
        """Everything is handed over; allow ``limit`` more for the answer."""
        self.deadline = time.monotonic() + limit.total_seconds()
        self.awaits_reply = True
        if self._moved is not None:
            self._moved(self.deadline)

    def on_await(self, moved: Callable[[float], None]) -> None:
        """Set the callback for a new deadline."""
        self._moved = moved


@value
class Parcel:
    """Input of a provider: the content, and the ids that are in every row, log line and event."""

    message: MessageId
    tenant: TenantId
    content: Any  # type of the kind: an e-mail, or the arguments of a task
    attempt: int
    revision: int
    request_id: str


@value
class Features:
    """Features of a provider; the reference page is made from these.

    ``replays_for`` is how long it recognizes the key of a call: a repetition within that time hands
    nothing over and gets the first answer. None: it recognizes no keys.
    """

    is_remote: bool = True
    is_encrypted: bool = False
    names_stage: bool = False
    refuses_copies: bool = False
    is_relay: bool = False
    replays_for: timedelta | None = None
    gives_evidence: bool = False
    tells_rate: bool = False
    has_regions: bool = False
    keeps_mail: bool = False


@value
class Quota:
    """Sending limits of a provider account; ``per_day`` None: no limit in 24 hours."""

    per_second: float
    per_day: int | None
    sent_last_day: int


class Provider(Protocol):
    """Takes e-mail for delivery.

    Promises, one module each in ``tests/contract/provider``:

    begins   It calls `begin` before the hand-over, and reports the outcome.
    replays  If it recognizes keys, a repeated call hands nothing over and gets the first answer.
    """

    name: str
    features: Features

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Hand the parcel over.

        An exception before the hand-over means deferred, after it unknown.
        """


@value
class Fault:
    """A problem with a provider, and the remedy; ``is_deadly``: its mail would fail instead of wait."""

    told: str
    advice: str
    is_deadly: bool = False


def fault_of(failure: Failure, advice: str) -> Fault:
    """The fault behind a failure; it is deadly unless it may end by itself."""
    is_deadly = not failure.retryable or failure.category is Category.CONFIGURATION_ERROR
    return Fault(failure.reason, advice if is_deadly else f"{_WAITS}; {advice}", is_deadly)


@runtime_checkable
class RemoteProvider(Provider, Protocol):
    """A provider across a network; ``tests/contract/provider`` tests it too."""

    async def check(self) -> Sequence[Fault]:
        """Problems that prevent its use now, if any; nothing is sent to find out."""

    async def close(self) -> None:
        """Close the connections."""


@runtime_checkable
class QuotaProvider(Provider, Protocol):
    """A provider that reports its rate limit; ``tests/contract/provider`` has the other promises."""

    async def quota(self) -> Quota | None:
        """The limits of the account; None if unknown."""
