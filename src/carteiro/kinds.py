"""What a worker can do: each kind of job with its way along the path."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, TypeAlias

from carteiro.email import Email
from carteiro.model import KindName, LeasedJob, Outcome, TenantId, value
from carteiro.path.confirm import Confirmation
from carteiro.policy.retry import RetryPolicy
from carteiro.ports.provider import Handover, Parcel

Confirm: TypeAlias = Callable[[LeasedJob], Confirmation]
Deliver: TypeAlias = Callable[[Parcel, Handover], Awaitable[Outcome]]


class Render(Protocol):
    """Puts the words of its template into an e-mail of a tenant; `InvalidMessage` if that cannot be done."""

    async def __call__(self, email: Email, *, tenant: TenantId) -> Email:
        """The e-mail with its words."""
        ...


@value
class Kind:
    """One kind of job.

    ``confirm`` None: nothing is judged before the attempt. ``render`` is for what it finds
    unrendered. ``declares`` False: an attempt is not declared, a redelivery just runs again.
    ``call_limit`` None: it may take as long as it likes.
    ``replays_for``: so long its provider knows a call again (`Features`).
    ``close`` is called once, when its worker has ended its last job. ``check`` asks the provider
    whether it could be used now, and sends nothing; it answers what keeps it from that.
    """

    name: KindName
    provider: str
    confirm: Confirm | None
    deliver: Deliver
    policy: Callable[[LeasedJob], RetryPolicy]  # asked at each failure: a change acts at once
    declares: bool
    call_limit: timedelta | None
    render: Render | None = None
    replays_for: timedelta | None = None
    close: Callable[[], Awaitable[None]] | None = None
    check: Callable[[], Awaitable[str | None]] | None = None


@value
class Pool:
    """Kinds that share slots; each pool claims for itself, as many as it has free."""

    name: str
    slots: int
    kinds: tuple[Kind, ...]
