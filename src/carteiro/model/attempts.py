"""The work on a message: claimed, declared, settled, cancelled."""

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from carteiro.model.basics import ZERO, ClaimId, KindName, MessageId, RecipientId, TenantId, value
from carteiro.model.messages import Delivery, Recipient
from carteiro.model.outcomes import Verdict
from carteiro.model.states import Event, State


class Lease(NamedTuple):
    """The right to work on a job, until it expires or another claim takes the job."""

    job: MessageId
    claim: ClaimId


@value
class LeasedJob:
    """A job that a worker has claimed, with the ledger's data on its message.

    ``content`` is None if the ledger has no such message. ``open_attempt`` set means in doubt:
    an attempt was declared and never settled. ``claims`` includes this claim.
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
    retry_preset: str | None = None  # from its template type, else from its tenant
    provider: str | None = None  # the provider of its last attempt
    suppressed: frozenset[str] = frozenset()  # its suppressed addresses


@value
class Claimed:
    """Result of a claim; ``idle_for`` is the time to the next due job or waking tenant, None if there is none."""

    jobs: list[LeasedJob]
    idle_for: timedelta | None


@value
class Start:
    """An attempt about to be made; ``open_attempt`` repeats the claim's value, to detect a change since then."""

    lease: Lease
    provider: str
    hold: timedelta
    open_attempt: bool = False
    events: tuple[Event, ...] = ()


@value
class Begun:
    """The attempt is durable and can start now; ``attempt`` is its number."""

    attempt: int


class RefusedWhy(StrEnum):
    """Reasons to refuse an attempt."""

    LOST = "lost"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    HELD = "held"
    NOT_DUE = "not_due"
    FINISHED = "finished"
    DELIVERED = "delivered"  # proved by a late result; settling this claim makes the message SENT


@value
class Refused:
    """The attempt must not be made."""

    why: RefusedWhy
    wait: timedelta = ZERO


@value
class End:
    """The result of a claimed job.

    ``in_doubt`` counts the unknown outcomes that this verdict adds. ``attempted``: an attempt was made
    without being declared (kinds that do not declare). ``revision``: the revision that was sent, None if
    it does not matter.
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
    """The verdict is stored; ``state`` is the new state of the message."""

    state: State


@value
class Late:
    """Another claim has the job: its attempt is unchanged, and the new result is recorded as evidence."""

    state: State | None


class CancelAnswer(StrEnum):
    """Result of a cancel."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"
    NOT_FOUND = "not_found"
