"""The words of the product as values: message, job, lease, outcome, verdict, dead letter, tenant. No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from ipaddress import ip_network
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NamedTuple,
    NewType,
    TypeAlias,
    TypeVar,
    dataclass_transform,
)

MessageId = NewType("MessageId", str)  # UUIDv7; also the job's id: one message, one job
ClaimId = NewType("ClaimId", str)  # made anew for each claim call
TenantId = NewType("TenantId", str)
KindName = NewType("KindName", str)
RecipientId = NewType("RecipientId", str)
KeyId = NewType("KeyId", str)
Cursor = NewType("Cursor", str)  # where a page ended; opaque to everyone but the store that made it

EMAIL = KindName("email:send")
ZERO = timedelta(0)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # nothing is due after it
Metadata: TypeAlias = Mapping[str, Any]
Row = TypeVar("Row")

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


def made_at(message: MessageId) -> float | None:
    """When the message got its id, in seconds since 1970: a UUIDv7 starts with the milliseconds.

    None: whoever gave it one, by SQL, took another kind.
    """
    return int(message[:8] + message[9:13], 16) / 1000 if message[14:15] == "7" else None


@dataclass(slots=True)
class Page(Generic[Row]):
    """A part of a list; ``next`` leads to the part after it, None at the end. A short one need not be the last."""

    rows: list[Row]
    next: Cursor | None


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
    RECIPIENT_REFUSED = "RECIPIENT_REFUSED"
    DELAYED = "DELAYED"
    DELIVERED = "DELIVERED"
    OPENED = "OPENED"
    CLICKED = "CLICKED"
    BOUNCED = "BOUNCED"
    COMPLAINED = "COMPLAINED"


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
    """The provider took the message over; ``refused`` are the copies, by address, that it did not take."""

    provider_id: str
    refused: tuple[tuple[str, Failure], ...] = ()


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
class IdempotencyKey:
    """What a tenant calls a request, so that asking twice does it once; ``digest`` is that of what it asked."""

    key: str
    digest: str


@value
class ApiLimits:
    """How many messages a tenant may hand in over HTTP in a minute, an hour, a day (UTC); None: any number."""

    per_minute: int | None = 100
    per_hour: int | None = 2_000
    per_day: int | None = 10_000

    @property
    def has_any(self) -> bool:
        """Whether there is anything to count for."""
        return (self.per_minute, self.per_hour, self.per_day) != (None, None, None)

    def check(self) -> None:
        """Raise ValueError on limits that make no sense."""
        for name in ("per_minute", "per_hour", "per_day"):
            given = getattr(self, name)
            if given is not None and not 0 <= given <= _MOST_SENDS:
                text = f"{name} must be 0 to {_MOST_SENDS}"
                raise ValueError(text)


@value
class QueueRow:
    """What the table queue shows of a message that the ledger does not know."""

    user_id: str | None  # a UUID
    max_retries: int = 3


@value
class NewMessage:
    """What a tenant wants done, ready to be committed.

    ``key`` set: committed with the message, kept for a day. ``limits`` set: counted against them.
    ``row`` set: it is a row of the table queue, where the store has one.
    """

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
    tags: tuple[str, ...] = ()
    template_type: str | None = None
    key: IdempotencyKey | None = None
    limits: ApiLimits | None = None
    row: QueueRow | None = None


@value
class Accepted:
    """Durably committed."""

    id: MessageId
    received_at: datetime
    recipient_id: RecipientId | None = None


@value
class Replayed:
    """Already there, by its id or its key: the first acceptance again, nothing was written or counted."""

    id: MessageId
    received_at: datetime
    recipient_id: RecipientId | None = None
    request_id: str = ""


@value
class TenantUnknown:
    """No such tenant: nothing was written."""

    tenant: TenantId


@value
class TenantDisabled:
    """The tenant may not send: nothing was written."""

    tenant: TenantId


@value
class KeyConflict:
    """The key stands for another request: nothing was written."""

    first: MessageId


@value
class OverLimit:
    """The tenant handed in as many as it may: nothing was written. The limit that opens last is told."""

    limit: int
    remaining: int
    resets_at: datetime
    retry_after: timedelta


AcceptAnswer: TypeAlias = (
    Accepted | Replayed | TenantUnknown | TenantDisabled | KeyConflict | OverLimit
)


@value
class NotStored:
    """One of a long list that came after the store failed: those before it are stored, it may be sent again."""

    reason: str


StoreAnswer: TypeAlias = Accepted | Replayed | KeyConflict | OverLimit | NotStored


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
    retry_preset: str | None = None  # of its template type, else of its tenant
    provider: str | None = None  # of its last attempt
    suppressed: frozenset[str] = frozenset()  # those of its addresses that must not be written to


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


@value
class DeadFilter:
    """Which dead letters; what is None does not matter. ``text`` is looked for in code, reason and address."""

    tenant: TenantId | None = None
    kind: KindName | None = None
    reason: DeadReason | None = None
    code: str | None = None
    category: Category | None = None
    text: str | None = None
    moved_after: datetime | None = None
    moved_before: datetime | None = None
    is_redriven: bool | None = None


@value
class DeadGroup:
    """Dead letters that have something in common."""

    key: str
    count: int
    oldest: datetime
    newest: datetime


@value
class Revision:
    """What a dead letter is to become: new content, a new Message-ID, a new provider key."""

    content: str
    to: str | None
    subject: str | None
    recipient: NewRecipient | None = None  # who it is for now; None: nobody that is known
    of: int | None = None  # the revision that it was made of; None: of whichever it finds


class RedriveAnswer(StrEnum):
    """What a redrive did."""

    REDRIVEN = "redriven"
    ALREADY = "already_redriven"
    NOT_FOUND = "not_found"
    NO_CONTENT = "no_content"  # its body is past its retention
    CHANGED = "changed"  # it is another revision by now than the one that was edited


# --- feedback: what a provider tells later ------------------------------------------------------


class BounceKind(StrEnum):
    """Whose fault a bounce is: an address that is none, one that cannot take it now, or the mail's."""

    HARD = "hard"
    SOFT = "soft"
    REJECTED = "rejected"


@value
class Feedback:
    """What a provider told of a message that it took over.

    ``type`` SENT: that it has it, and no more. ``event_id`` is the same whenever the same is told again.
    ``revision`` is that of what it took, ``tenant_tag`` what its tenant is called in a tag; None if it did not say.
    """

    message: MessageId
    type: EventType
    at: datetime
    provider: str
    provider_id: str
    event_id: str
    revision: int | None = None
    recipients: tuple[str, ...] = ()
    bounce: BounceKind | None = None
    detail: str | None = None
    tenant_tag: str | None = None


class NoteAnswer(StrEnum):
    """What a feedback did."""

    NOTED = "noted"
    RESOLVED = "resolved"  # noted, and the message is SENT by it
    KNOWN = "known"
    UNKNOWN = "unknown"  # there is no such message, or none of it was ever sent
    IGNORED = "ignored"  # the message is another tenant's, or was never with that provider


# --- suppressions -------------------------------------------------------------------------------


class SuppressionReason(StrEnum):
    """Why an address must not be written to."""

    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    MANUAL = "manual"
    SOFT_BOUNCE = "soft_bounce"


@value
class NewSuppression:
    """An address, and why it is not to be written to; ``at`` None: now, ``expires_at`` None: as its reason has it."""

    address: str
    reason: SuppressionReason
    at: datetime | None = None
    expires_at: datetime | None = None


@value
class Suppression:
    """One reason why an address is not written to; ``address`` None: it was erased, its hash alone is known.

    A soft bounce is merely counted (``bounces``) until it ``is_active``.
    """

    address: str | None
    reason: SuppressionReason
    created_at: datetime
    expires_at: datetime | None
    is_active: bool = True
    bounces: int = 0


# --- tenants ----------------------------------------------------------------------------------


LIGHTEST, HEAVIEST = 1e-6, 1e6  # weights
LARGEST_CAP = 1_000_000
_SLOWEST, _FASTEST = 1e-6, 1e6  # jobs a second
_MOST_SENDS, _LONGEST_WINDOW = 1_000_000_000, timedelta(days=366)
_LONGEST_DOMAIN = 253
_DOMAIN = re.compile(r"[^\W_](?:[\w-]*[^\W_])?(?:\.[^\W_](?:[\w-]*[^\W_])?)+")  # in any script


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
    disabled: bool = False  # accepts nothing, no key opens; what waits is held as when paused
    default_from: str | None = None
    from_domains: tuple[str, ...] = ()  # () allows any
    allowed_networks: tuple[str, ...] = ()  # () allows any
    limits: ApiLimits | None = None  # None: as configured
    retry_preset: str | None = None  # None: as configured
    external_id_is_key: bool = False

    @property
    def is_held(self) -> bool:
        """Whether what waits stays where it is."""
        return self.paused or self.disabled

    def check(self) -> None:
        """Raise ValueError on a tenant that makes no sense; its text begins with the field."""
        if self.weight is not None and not LIGHTEST <= self.weight <= HEAVIEST:
            raise ValueError(f"weight must be {LIGHTEST:g} to {HEAVIEST:g}")
        if self.cap is not None and not self._is_cap(self.cap):
            raise ValueError(f"cap must be a whole number from 1 to {LARGEST_CAP}")
        if self.rate_per_second is not None and not _SLOWEST <= self.rate_per_second <= _FASTEST:
            raise ValueError(f"rate_per_second must be {_SLOWEST:g} to {_FASTEST:g}")
        if self.limits is not None:
            self.limits.check()
        self._check_senders()
        self._check_networks()

    @staticmethod
    def _is_cap(given: object) -> bool:
        return isinstance(given, int) and 1 <= given <= LARGEST_CAP

    def _check_senders(self) -> None:
        if self.default_from is not None:
            local, _, domain = self.default_from.rpartition("@")
            if not local or not _is_domain(domain):
                raise ValueError("default_from must be an e-mail address")
        for domain in self.from_domains:
            if not _is_domain(domain):
                raise ValueError(f"from_domains must be names of domains: {domain!r} is none")

    def _check_networks(self) -> None:
        for network in self.allowed_networks:
            try:
                ip_network(network)
            except ValueError as error:
                raise ValueError(f"allowed_networks must be IP networks: {error}") from None


def _is_domain(text: str) -> bool:
    return len(text) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(text) is not None


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
class Drawn:
    """What a process may call of a provider now; ``rate`` is what all may together, None: as fast as they can.

    ``wait``: so long there is no other call to be had. ``processes`` share it, whoever drew among them.
    ``places``: so many calls it may have at once, None: any number.
    """

    granted: int
    rate: float | None
    wait: timedelta
    processes: int
    places: int | None = None


@value
class ProviderStanding:
    """What one process knows of a provider: whether it is left alone, its rate, how often calls were held back.

    ``trouble_at`` is when it was left alone last, in seconds since 1970; None: never.
    """

    provider: str
    is_open: bool
    rate: float | None
    held_back: int
    trouble_at: float | None = None


@value
class ProviderRate:
    """How fast a provider is called, as people see it: per second, by all processes together; None: no limit.

    ``is_open``: the process that spoke last leaves it alone. ``trouble`` is why it was left alone last.
    """

    provider: str
    rate: float | None
    ceiling: float | None
    processes: int
    is_open: bool = False
    trouble: str | None = None
    trouble_at: datetime | None = None


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


# --- keys -------------------------------------------------------------------------------------

MOST_LIVE_KEYS = 2  # an old and a new one: enough to change keys without a pause


@value
class Key:
    """What is known of a key; ``tenant`` None: an administrator's. ``hint`` is its beginning, for people."""

    id: KeyId
    tenant: TenantId | None
    hint: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@value
class TooManyKeys:
    """The tenant has as many live keys as it may: revoke one first."""

    live: tuple[KeyId, ...]


# --- templates --------------------------------------------------------------------------------

MOST_TEMPLATES = 1000  # types of one tenant, those that are deleted included
MOST_TEMPLATE_VERSIONS = 100  # of one type; messages carry their words, so none needs an older one


@value
class NewTemplate:
    """A template as a tenant writes it; each `define` makes a new version."""

    tenant: TenantId
    type: str
    subject: str
    html: str | None = None
    text: str | None = None
    retry_preset: str | None = None


@value
class Template:
    """One version of a template."""

    tenant: TenantId
    type: str
    version: int
    subject: str
    html: str | None
    text: str | None
    retry_preset: str | None
    created_at: datetime
    deleted_at: datetime | None = None  # the type was taken out of use while this was its newest


@value
class TemplateSummary:
    """One version of a template as lists show it, without its html and text: they may be long."""

    tenant: TenantId
    type: str
    version: int
    subject: str
    has_html: bool
    has_text: bool
    retry_preset: str | None
    created_at: datetime
    deleted_at: datetime | None = None


@value
class TooManyTemplates:
    """The tenant has as many templates in use as it may: delete one first."""


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
    tags: tuple[str, ...] = ()
    template_type: str | None = None


@value
class MessageFilter:
    """Which messages; what is None does not matter.

    ``created_after`` is the first moment that counts, ``created_before`` the first that does not.
    """

    tenant: TenantId | None = None
    kind: KindName | None = None
    state: State | None = None
    to: str | None = None
    external_id: str | None = None
    recipient_external_id: str | None = None
    tag: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@value
class QueuePlace:
    """Where the job of an unfinished message is: ready, or parked until a moment, perhaps by a claim.

    ``tenant_wakes_at`` set: the tenant's seat is out of the ring until then. ``limited_until`` set: the
    send limit of the kind lets nothing go before.
    """

    parked_until: datetime | None
    is_claimed: bool
    claims: int
    tenant_wakes_at: datetime | None
    tenant_in_flight: int
    limited_until: datetime | None = None


@value
class Depth:
    """How much of one kind is in the queue; ``oldest_due_at``: since when the longest waiting could be claimed."""

    kind: KindName
    unfinished: int
    in_flight: int
    oldest_due_at: datetime | None


@value
class Erased:
    """What an erasure took away; ``has_more``: ask again, it works in pages."""

    messages: int
    recipients: int = 0
    has_more: bool = False


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
