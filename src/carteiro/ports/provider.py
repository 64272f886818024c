"""Who takes a message over, and the moment at which it does."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from carteiro.errors import DeadlinePassed
from carteiro.model import Category, Failure, MessageId, Outcome, TenantId, value

_WAITS = "mail waits and is tried again"


class Handover:
    """The point of no return of one provider call.

    Its life: made before `declare` with a deadline on the monotonic clock; the provider calls
    `begin` just before the first byte that could hand the message over; from then on a call
    without an answer is in doubt, before it nothing was handed over. Where the answer may take
    longer than the call, the provider then says so by `await_reply`, and whoever holds the message
    goes on holding it. While it has asked nobody yet, as all connections are in use, it `is_queued`:
    a call that ends then was never made.
    """

    __slots__ = ("_moved", "awaits_reply", "begun", "deadline", "is_queued")

    def __init__(self, limit: timedelta) -> None:
        self.deadline = time.monotonic() + limit.total_seconds()
        self.begun = False
        self.awaits_reply = False
        self.is_queued = False
        self._moved: Callable[[timedelta], None] | None = None

    def begin(self) -> None:
        """Pass the last check: a process that slept past its deadline must not deliver."""
        if time.monotonic() >= self.deadline:
            raise DeadlinePassed
        self.begun = True

    def await_reply(self, limit: timedelta) -> None:
        """All is handed over: nothing but the answer is missing, and it may take so long from now on."""
        self.deadline = time.monotonic() + limit.total_seconds()
        self.awaits_reply = True
        if self._moved is not None:
            self._moved(limit)

    def on_await(self, moved: Callable[[timedelta], None]) -> None:
        """Have whoever limits the call told how much longer it may take."""
        self._moved = moved


@value
class Parcel:
    """What a provider gets: the content, and the ids that run through every row, log line and event."""

    message: MessageId
    tenant: TenantId
    content: Any  # of the kind's own type: an e-mail, or a task's arguments
    attempt: int
    revision: int
    request_id: str


@value
class Features:
    """What a provider can do; the reference page is made of this.

    ``replays_for`` is how long it knows a call again by its key: repeated within that time, a call
    hands nothing over twice and gets the first answer. None: it knows none again.
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


@value
class Quota:
    """What a provider lets an account send; ``per_day`` None: any number in 24 hours."""

    per_second: float
    per_day: int | None
    sent_last_day: int


class Provider(Protocol):
    """Takes e-mail over.

    Promises, one module each in ``tests/contract/provider``:

    begins   It begins the hand-over before it, and says what came of it.
    replays  Where it knows calls again, a repeated one hands nothing over and has the first answer.
    """

    name: str
    features: Features

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Hand the parcel over.

        An exception is judged by the stage: deferred before the hand-over, unknown after it.
        """
        ...


@value
class Fault:
    """Something against a provider, and what to do about it; ``is_deadly``: mail for it would not wait, but fail."""

    told: str
    advice: str
    is_deadly: bool = False


def fault_of(failure: Failure, advice: str) -> Fault:
    """The fault that a failure speaks of: what may pass by itself is not deadly, what must be set right is."""
    is_deadly = not failure.retryable or failure.category is Category.CONFIGURATION_ERROR
    return Fault(failure.reason, advice if is_deadly else f"{_WAITS}; {advice}", is_deadly)


@runtime_checkable
class RemoteProvider(Provider, Protocol):
    """A provider across a network; its promises, too, are tried in ``tests/contract/provider``."""

    async def check(self) -> Sequence[Fault]:
        """What keeps it from being used now, if anything; nothing is sent to find out."""
        ...

    async def close(self) -> None:
        """Take leave of it."""
        ...


@runtime_checkable
class QuotaProvider(Provider, Protocol):
    """A provider that can be asked how fast it may be called; ``tests/contract/provider`` for the rest."""

    async def quota(self) -> Quota | None:
        """What the account may send; None if it cannot be asked, or does not say."""
        ...
