"""The words of the product as values: message, job, lease, outcome, verdict, dead letter, tenant. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, TypeAlias, TypeVar, dataclass_transform

MessageId = NewType("MessageId", str)  # UUIDv7; also the job's id: one message, one job
ClaimId = NewType("ClaimId", str)  # made anew for each claim call
TenantId = NewType("TenantId", str)
KindName = NewType("KindName", str)
RecipientId = NewType("RecipientId", str)

EMAIL = KindName("email:send")
ZERO = timedelta(0)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # nothing is due after it
Metadata: TypeAlias = Mapping[str, Any]

if TYPE_CHECKING:
    _T = TypeVar("_T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[_T]) -> type[_T]:
        """Make a value of a class: fields, equality, a hash, and nobody changes it."""
        ...

else:
    # Frozen to the type checker only: `frozen=True` makes creating an object three times as dear,
    # and the hot path creates about ten per message.
    value = dataclass(slots=True, unsafe_hash=True)


# --- states -----------------------------------------------------------------------------------


class State(StrEnum):
    """Where a message stands. VALIDATION_FAILED is passed through, never rested in."""

    ENQUEUED = "ENQUEUED"
    RECEIVED = "RECEIVED"
    VALIDATED = "VALIDATED"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    SENT_ATTEMPT = "SENT_ATTEMPT"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    SENT = "SENT"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.ENQUEUED: frozenset(
        {State.RECEIVED, State.EXPIRED, State.CANCELLED, State.FAILED, State.SENT}
    ),
    State.RECEIVED: frozenset(
        {
            State.VALIDATED,
            State.VALIDATION_FAILED,
            State.EXPIRED,
            State.CANCELLED,
            State.SENT_ATTEMPT,
        }
    ),
    State.VALIDATED: frozenset({State.SENT_ATTEMPT, State.EXPIRED, State.CANCELLED}),
    State.VALIDATION_FAILED: frozenset({State.FAILED}),
    State.SENT_ATTEMPT: frozenset(
        {
            State.SENT,
            State.FAILED,
            State.RETRY_SCHEDULED,
            State.CANCELLED,
            State.EXPIRED,
            State.RECEIVED,
        }
    ),
    State.RETRY_SCHEDULED: frozenset(
        {State.RECEIVED, State.EXPIRED, State.CANCELLED, State.FAILED, State.SENT}
    ),
    State.FAILED: frozenset({State.ENQUEUED, State.SENT}),
    State.EXPIRED: frozenset({State.ENQUEUED, State.SENT}),
    State.SENT: frozenset(),
    State.CANCELLED: frozenset(),
}

FINISHED = frozenset({State.SENT, State.FAILED, State.EXPIRED, State.CANCELLED})
DEAD = frozenset({State.FAILED, State.EXPIRED})


class EventType(StrEnum):
    """What a timeline may hold: every state, and what happened beside the states."""

    ENQUEUED = State.ENQUEUED.value
    RECEIVED = State.RECEIVED.value
    VALIDATED = State.VALIDATED.value
    VALIDATION_FAILED = State.VALIDATION_FAILED.value
    SENT_ATTEMPT = State.SENT_ATTEMPT.value
    RETRY_SCHEDULED = State.RETRY_SCHEDULED.value
    SENT = State.SENT.value
    FAILED = State.FAILED.value
    EXPIRED = State.EXPIRED.value
    CANCELLED = State.CANCELLED.value
    IN_DOUBT = "IN_DOUBT"
    LATE_RESULT = "LATE_RESULT"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"


@value
class Event:
    """One line of a timeline; ``ago`` is how long before the commit it happened (the store adds its now)."""

    type: EventType
    metadata: Metadata
    ago: timedelta = ZERO


@value
class TimelineEvent:
    """An event as it is read back."""

    type: EventType
    metadata: Metadata
    at: datetime


# --- what goes wrong --------------------------------------------------------------------------


class Category(StrEnum):
    """The kind of a failure, as dashboards group it."""

    VALIDATION_ERROR = "VALIDATION_ERROR"
    PERMANENT_ERROR = "PERMANENT_ERROR"
    CONFIGURATION_ERROR = "CONFIGURATION_ERROR"
    TRANSIENT_ERROR = "TRANSIENT_ERROR"
    QUOTA_ERROR = "QUOTA_ERROR"
    TIMEOUT_ERROR = "TIMEOUT_ERROR"


class Scope(StrEnum):
    """Whose fault a failure is."""

    RECIPIENT = "recipient"
    MESSAGE = "message"
    SENDER = "sender_identity"
    TENANT = "tenant"
    PROVIDER = "provider"
    DESTINATION = "destination"


@value
class Failure:
    """What went wrong, classified once; ``rule`` names the rule that decided."""

    code: str
    category: Category
    retryable: bool
    scope: Scope
    reason: str
    rule: str
    original_code: str | None = None


class DeadReason(StrEnum):
    """Why a message became a dead letter."""

    MAX_ATTEMPTS_EXCEEDED = "max_attempts_exceeded"
    PERMANENT_ERROR = "permanent_error"
    VALIDATION_FAILED = "validation_failed"
    EXPIRED = "expired"
    IN_DOUBT = "in_doubt"
    CRASHES_WORKER = "crashes_worker"


# --- outcome: what the provider said ----------------------------------------------------------


@value
class Taken:
    """The provider took the message over."""

    provider_id: str


@value
class Rejected:
    """The provider said no, for good."""

    failure: Failure


@value
class Deferred:
    """The provider said: not now."""

    failure: Failure
    retry_after: timedelta = ZERO


@value
class NotMade:
    """The call never started: proof that nothing was handed over, and nobody's failure."""

    failure: Failure
    wait: timedelta = ZERO


@value
class Unknown:
    """Handed over, and the answer never came."""

    failure: Failure


Outcome: TypeAlias = Taken | Rejected | Deferred | NotMade | Unknown


# --- verdict: what we decide ------------------------------------------------------------------


@value
class Sent:
    """It is done."""

    provider: str
    provider_id: str


@value
class Retry:
    """Try again ``after`` a while; only a charged failure counts against the policy."""

    after: timedelta
    charged: bool
    failure: Failure


@value
class Dead:
    """Give up, and keep it for people."""

    reason: DeadReason
    failure: Failure
    charged: bool = False


Verdict: TypeAlias = Sent | Retry | Dead


# --- accepting --------------------------------------------------------------------------------


class Delivery(StrEnum):
    """What to do when an outcome is unknown: send again, or never risk a second one."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


@value
class NewRecipient:
    """Who the tenant says it writes to; known by id, else external id, else document hash."""

    email: str
    recipient_id: RecipientId | None = None
    external_id: str | None = None
    cpf_cnpj_hash: str | None = None
    razao_social: str | None = None
    nome: str | None = None


@value
class Recipient:
    """A recipient as stored."""

    id: RecipientId
    tenant: TenantId
    email: str
    external_id: str | None
    cpf_cnpj_hash: str | None
    razao_social: str | None
    nome: str | None
    created_at: datetime
    deleted_at: datetime | None


@value
class NewMessage:
    """What a tenant wants done, ready to be committed."""

    id: MessageId
    tenant: TenantId
    kind: KindName
    content: str  # a JSON document; immutable once accepted
    request_id: str
    ttl: timedelta
    priority: int = 5
    due: datetime | None = None
    declares: bool = True
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    to: str | None = None
    subject: str | None = None
    external_id: str | None = None
    recipient: NewRecipient | None = None
    events: tuple[Event, ...] = ()


@value
class Accepted:
    """Durably committed."""

    id: MessageId
    received_at: datetime
    recipient_id: RecipientId | None = None


@value
class Replayed:
    """Already there: the first acceptance again, nothing was written."""

    id: MessageId
    received_at: datetime
    recipient_id: RecipientId | None = None


@value
class TenantUnknown:
    """No such tenant: nothing was written."""

    tenant: TenantId


AcceptAnswer: TypeAlias = Accepted | Replayed | TenantUnknown


@value
class NotStored:
    """One of a long list that came after the store failed: those before it are stored, it may be sent again."""

    reason: str


StoreAnswer: TypeAlias = Accepted | Replayed | NotStored


# --- claiming ---------------------------------------------------------------------------------


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


@value
class Claimed:
    """What a claim got; ``idle_for`` is the time to the next due job or waking tenant, None if there is none."""

    jobs: list[LeasedJob]
    idle_for: timedelta | None


# --- declaring --------------------------------------------------------------------------------


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


# --- settling ---------------------------------------------------------------------------------


@value
class End:
    """What became of a claimed job.

    ``in_doubt`` counts the unknown outcomes that this verdict adds; ``attempted`` says that an
    attempt was made which was never declared (kinds that do not declare).
    """

    lease: Lease
    verdict: Verdict
    events: tuple[Event, ...] = ()
    duration: timedelta = ZERO
    in_doubt: int = 0
    attempted: bool = False


@value
class Settled:
    """The verdict is stored; ``state`` is what it made of the message."""

    state: State


@value
class Late:
    """The claim was taken over: nothing of another's attempt changed, what is new is kept as evidence."""

    state: State | None


# --- cancelling -------------------------------------------------------------------------------


class CancelAnswer(StrEnum):
    """What a cancel did."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    FINISHED = "finished"
    NOT_FOUND = "not_found"


# --- dead letters -----------------------------------------------------------------------------


@value
class DeadLetter:
    """A message that could not be delivered, kept for people."""

    id: MessageId
    tenant: TenantId
    kind: KindName
    content: str
    reason: DeadReason
    failed_attempts: int
    failure: Failure
    failed_at: datetime
    enqueued_at: datetime
    moved_at: datetime
    ttl: timedelta
    redriven_at: datetime | None


class RedriveAnswer(StrEnum):
    """What a redrive did."""

    REDRIVEN = "redriven"
    ALREADY = "already_redriven"
    NOT_FOUND = "not_found"


# --- tenants ----------------------------------------------------------------------------------


_SLOWEST, _FASTEST = 1e-6, 1e6  # jobs a second
_MOST_SENDS, _LONGEST_WINDOW = 1_000_000_000, timedelta(days=366)


@value
class Tenant:
    """Who sends, and how much of the machine it may have. A weight of its own wins over its tier's."""

    id: TenantId
    name: str = ""
    tier: str | None = None
    weight: float | None = None
    cap: int | None = None  # at most so many in flight
    rate_per_second: float | None = None
    paused: bool = False

    def check(self) -> None:
        """Raise ValueError on a share that makes no sense."""
        if self.weight is not None and not 0 < self.weight < float("inf"):
            raise ValueError("weight must be above 0")
        if self.cap is not None and (not isinstance(self.cap, int) or self.cap < 1):
            raise ValueError("cap must be a whole number of at least 1")
        if self.rate_per_second is not None and not _SLOWEST <= self.rate_per_second <= _FASTEST:
            raise ValueError(f"rate_per_second must be {_SLOWEST:g} to {_FASTEST:g}")


@value
class Fairness:
    """How tenants take turns; the defaults and names are the settings' own."""

    enable_round_robin: bool = True
    max_jobs_per_tenant_batch: int = 3
    round_robin_base_priority: int = 5
    priority_increment_per_round: int = 1
    max_round_robin_priority: int = 1

    def check(self) -> None:
        """Raise ValueError on settings that make no sense."""
        if self.max_jobs_per_tenant_batch < 1:
            raise ValueError("max_jobs_per_tenant_batch must be at least 1")
        if min(self.round_robin_base_priority, self.max_round_robin_priority) < 1:
            raise ValueError("priorities start at 1")
        if self.priority_increment_per_round < 0:
            raise ValueError("priority_increment_per_round must not be below 0")


@value
class SendLimit:
    """At most ``count`` jobs of a kind in ``per``, whoever claims them."""

    count: int
    per: timedelta

    def check(self) -> None:
        """Raise ValueError on a limit that makes no sense."""
        if not 1 <= self.count <= _MOST_SENDS or not ZERO < self.per <= _LONGEST_WINDOW:
            raise ValueError(f"a send limit is 1 to {_MOST_SENDS} jobs in up to {_LONGEST_WINDOW}")


@value
class Standing:
    """How a tenant fares among the others, for one kind."""

    tenant: TenantId
    kind: KindName
    last_processed_at: datetime | None
    rounds_without_processing: int
    current_priority: int
    total_processed: int
    consecutive_batch_count: int
    waiting: int
    in_flight: int


# --- reading ----------------------------------------------------------------------------------


@value
class StoredMessage:
    """A ledger row, as people and the API read it."""

    id: MessageId
    tenant: TenantId
    kind: KindName
    state: State
    priority: int
    due_at: datetime
    expires_at: datetime
    attempts: int
    charged: int
    in_doubt: int
    round: int
    revision: int
    holder: ClaimId | None
    held_until: datetime | None
    cancel_requested_at: datetime | None
    request_id: str
    external_id: str | None
    recipient_id: RecipientId | None
    to: str | None
    subject: str | None
    provider: str | None
    provider_id: str | None
    failure: Failure | None
    duration: timedelta | None
    created_at: datetime
    finished_at: datetime | None
    content: str | None


@value
class InboxMail:
    """What the sandbox handed over: one row per delivery."""

    message: MessageId
    tenant: TenantId
    to: str
    subject: str
    content: str
    provider_id: str
    at: datetime | None = None  # the store's, on reading
