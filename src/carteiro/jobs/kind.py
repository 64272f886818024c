"""What a worker can do: each kind of job with its way along the path."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Protocol, TypeAlias

from carteiro.email.message import Email
from carteiro.jobs.confirmation import Confirmation
from carteiro.model import KindName, LeasedJob, Outcome, ProviderStanding, TenantId, Verdict, value
from carteiro.policy.retry import RetryPolicy
from carteiro.ports.provider import Handover, Parcel

Confirm: TypeAlias = Callable[[LeasedJob], Confirmation]
Deliver: TypeAlias = Callable[[Parcel, Handover], Awaitable[Outcome]]
Overrule: TypeAlias = Callable[[Outcome], Outcome]
Learn: TypeAlias = Callable[[Parcel, Outcome, Verdict], Awaitable[None]]


class Render(Protocol):
    """Puts the words of its template into an e-mail of a tenant; `InvalidMessage` if that cannot be done."""

    async def __call__(self, email: Email, *, tenant: TenantId) -> Email:
        """The e-mail with its words."""
        ...


class Link(Protocol):
    """The provider of a kind as one among several: it learns from its calls."""

    def unused(self) -> None:
        """The call that it was chosen for is not made."""
        ...

    def begin(self) -> int:
        """A call is made; what is returned goes with what came of it."""
        ...

    def heard(self, began: int, outcome: Outcome) -> None:
        """Learn what came of a call."""
        ...


class Chain(Protocol):
    """Kinds of one name that differ in their provider, and which of them is next."""

    def choose(self, job: LeasedJob) -> "Kind | timedelta":
        """The kind whose provider the next attempt goes to, or how long none can be called."""
        ...

    def elsewhere(self, job: LeasedJob, outcome: Outcome, by: str) -> timedelta | None:
        """After this came of an attempt: how long until another provider can have the message; None: it stays."""
        ...

    def held_for(self) -> timedelta:
        """How long nobody at all can be called."""
        ...

    @property
    def most_at_once(self) -> int | None:
        """How many calls there can be now; None: no matter how many."""
        ...

    def standings(self) -> list[ProviderStanding]:
        """What is known of each provider, for people."""
        ...


@value
class Kind:
    """One kind of job.

    ``confirm`` None: nothing is judged before the attempt. ``render`` is for what it finds
    unrendered. ``declares`` False: an attempt is not declared, a redelivery just runs again.
    ``call_limit`` None: it may take as long as it likes.
    ``start_within``: so soon after its claim an attempt begins, or the job is given back once to be claimed
    anew; None: at any time. A send limit counts claims, and wants starts to follow them.
    ``overrule`` makes of an outcome what the operator's own rules want.
    ``replays_for``: so long its provider knows a call again (`Features`).
    ``chain``: before each attempt it says which kind is meant, one that has a ``link``.
    ``learn`` is told what came of each attempt once that is settled.
    ``close`` is called once, when its worker has ended its last job.
    """

    name: KindName
    provider: str
    confirm: Confirm | None
    deliver: Deliver
    policy: Callable[[LeasedJob], RetryPolicy]  # asked at each failure: a change acts at once
    declares: bool
    call_limit: timedelta | None
    start_within: timedelta | None = None
    render: Render | None = None
    overrule: Overrule | None = None
    replays_for: timedelta | None = None
    learn: Learn | None = None
    close: Callable[[], Awaitable[None]] | None = None
    chain: Chain | None = None
    link: Link | None = None

    def through(self, link: Link, chain: Chain) -> "Kind":
        """The same kind as a part of a chain."""
        return replace(self, link=link, chain=chain)


@value
class Pool:
    """Kinds that share slots; each pool claims for itself, as many as it has free."""

    name: str
    slots: int
    kinds: tuple[Kind, ...]
