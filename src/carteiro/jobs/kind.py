"""Kinds of jobs: how a worker confirms, delivers and retries each."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from carteiro.email.message import Email
from carteiro.jobs.confirmation import Confirmation
from carteiro.model import (
    Failure,
    KindName,
    LeasedJob,
    MessageId,
    Outcome,
    ProviderStanding,
    TenantId,
    Verdict,
    value,
)
from carteiro.policy.lessons import Lesson
from carteiro.policy.retry import RetryPolicy
from carteiro.ports.provider import Handover, Parcel

Confirm: TypeAlias = Callable[[LeasedJob], Confirmation]
Deliver: TypeAlias = Callable[[Parcel, Handover], Awaitable[Outcome]]
Overrule: TypeAlias = Callable[[Outcome], Outcome]
Advise: TypeAlias = Callable[[LeasedJob, Failure], Lesson | None]
Learn: TypeAlias = Callable[[Parcel, Outcome, Verdict], Awaitable[None]]


class Render(Protocol):
    """Renders the template of an e-mail of a tenant; `InvalidMessage` if that fails."""

    async def __call__(self, email: Email, *, tenant: TenantId, message: MessageId) -> Email:
        """Return the rendered e-mail."""


class Link(Protocol):
    """One provider of a chain; it learns from its calls."""

    def unused(self) -> None:
        """Release it: the chosen call is not made."""

    def begin(self) -> int:
        """Begin a call; pass the returned token to `heard`."""

    def heard(self, began: int, outcome: Outcome) -> None:
        """Learn from the outcome of a call."""


class Chain(Protocol):
    """Kinds of one name that differ in their provider; chooses the next one."""

    def choose(self, job: LeasedJob) -> "Kind | timedelta":
        """Return the kind for the next attempt, or the time until a provider can be called."""

    def sent(self, job: LeasedJob) -> None:
        """Learn that a provider has taken the message."""

    def elsewhere(self, job: LeasedJob, outcome: Outcome, by: str) -> timedelta | None:
        """Return the wait until another provider can take the message after this outcome; None: no change."""

    def held_for(self) -> timedelta:
        """Return the time until any provider can be called."""

    @property
    def most_at_once(self) -> int | None:
        """The number of calls allowed now; None: any number."""

    def standings(self) -> list[ProviderStanding]:
        """Return the state of each provider, for display."""


@value
class Kind:
    """One kind of job.

    ``confirm`` None: nothing is validated before the attempt. ``render`` is for e-mails found
    unrendered. ``declares`` False: attempts are not declared, a redelivery runs again.
    ``call_limit`` None: no timeout.
    ``start_within``: the longest time from claim to start; a later job is released once and claimed
    again; None: no limit. Send limits count claims, so starts must follow soon.
    ``connections``: its provider makes no more calls at once, and others wait; 0: any number.
    ``overrule`` applies the operator's own rules to an outcome.
    ``replays_for``: the time for which its provider recognises a repeated call (`Features`).
    ``chain`` chooses before each attempt a kind that has a ``link``.
    ``lesson`` is what history says about a failure that is to be retried.
    ``learn`` gets the result of each attempt once it is settled, unless all addresses were taken.
    ``function`` is called with the content instead of ``deliver``: a call that ends without an error is done. For kinds
    without ``declares``, ``call_limit`` and ``link``, whose calls need no handover.
    ``span`` are the attributes of the span of a call, in addition to its provider; None: a call has no span of its own.
    ``close`` is called once, after the last job of the worker.
    """

    name: KindName
    provider: str
    confirm: Confirm | None
    deliver: Deliver
    policy: Callable[[LeasedJob], RetryPolicy]  # called at each failure: a change applies at once
    declares: bool
    call_limit: timedelta | None
    start_within: timedelta | None = None
    connections: int = 0
    render: Render | None = None
    overrule: Overrule | None = None
    replays_for: timedelta | None = None
    lesson: Advise | None = None
    learn: Learn | None = None
    span: Mapping[str, str | int] | None = None
    close: Callable[[], Awaitable[None]] | None = None
    chain: Chain | None = None
    link: Link | None = None
    function: Callable[[Any], Awaitable[object]] | None = None


@value
class Pool:
    """Kinds that share slots; each pool claims only for its free slots."""

    name: str
    slots: int
    kinds: tuple[Kind, ...]
