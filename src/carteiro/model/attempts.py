"""The work on a message: claimed, declared, settled, cancelled."""

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from carteiro.model.basics import ZERO, ClaimId, KindName, MessageId, RecipientId, TenantId, value
from carteiro.model.messages import Delivery, Recipient
from carteiro.model.outcomes import Verdict
from carteiro.model.states import Event, State


class Lease(NamedTuple):
    """The right to work on a job, until it runs out or another claim takes the job over."""

    job: MessageId
    claim: ClaimId


@value
class LeasedJob:
    """A job in a worker's hands, with what the ledger knows of its message.

    ``content`` is None when the ledger has no such message. ``open_attempt`` set means in doubt:
    an attempt was declared and never settled. ``claims`` counts this claim.
    """

    lease: Lease
    kind: KindName
    tenant: TenantId
    claims: int
    content: str | None
    ledger_tenant: TenantId | None
    request_id: str
    delivery: Delivery
    attempts: int
    charged: int
    in_doubt: int
    revision: int
    open_attempt: bool
    expires_in: timedelta
    cancel_requested: bool = False
    recipient_id: RecipientId | None = None
    recipient: Recipient | None = None
    retry_preset: str | None = None  # of its template type, else of its tenant
    provider: str | None = None  # of its last attempt
    suppressed: frozenset[str] = frozenset()  # those of its addresses that must not be written to


@value
class Claimed:
    """What a claim got; ``idle_for`` is the time to the next due job or waking tenant, None if there is none."""

    jobs: list[LeasedJob]
    idle_for: timedelta | None


@value
class Start:
    """An attempt about to be made. ``open_attempt`` repeats what the claim said, so that both agree on the doubt."""

    lease: Lease
    provider: str
    hold: timedelta
    open_attempt: bool = False
    events: tuple[Event, ...] = ()


@value
class Begun:
    """The attempt is durable and may be made now; ``attempt`` is its number."""

    attempt: int


class RefusedWhy(StrEnum):
    """Why an attempt may not be made."""

    LOST = "lost"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    HELD = "held"
    NOT_DUE = "not_due"
    FINISHED = "finished"
    DELIVERED = "delivered"  # a late result proved it; the settle of this claim makes it SENT


@value
class Refused:
    """The attempt must not be made."""

    why: RefusedWhy
    wait: timedelta = ZERO


@value
class End:
    """What became of a claimed job.

    ``in_doubt`` counts the unknown outcomes that this verdict adds; ``attempted`` says that an
    attempt was made which was never declared (kinds that do not declare); ``revision`` is that of
    what was sent, None if it does not matter.
    """

    lease: Lease
    verdict: Verdict
    events: tuple[Event, ...] = ()
    duration: timedelta = ZERO
    in_doubt: int = 0
    attempted: bool = False
    revision: int | None = None


@value
class Settled:
    """The verdict is stored; ``state`` is what it made of the message."""

    state: State


@value
class Late:
    """The claim was taken over: nothing of another's attempt changed, what is new is kept as evidence."""

    state: State | None


class CancelAnswer(StrEnum):
    """What a cancel did."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"
    NOT_FOUND = "not_found"
