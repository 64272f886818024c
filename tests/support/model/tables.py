"""The data of the model, as plain dicts, and the few moves that several operations share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from carteiro.model import (
    ClaimId,
    DeadLetter,
    Fairness,
    IdempotencyKey,
    KindName,
    MessageId,
    NewMessage,
    Recipient,
    RecipientId,
    Replayed,
    SendLimit,
    Tenant,
    TenantId,
)
from carteiro.policy.fairness import stride
from carteiro.policy.lifecycle import (
    LONGEST_HOLD_MS,
    MILLISECOND,
    Change,
    Entry,
    NewDeadLetter,
    Stamped,
    is_live,
)
from carteiro.policy.pacing import Draw, Pace, Window, undrawn
from carteiro.policy.quota import KEY_LIFE_MS

FAR = 1 << 62  # an alarm that never rings
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(at: datetime) -> int:
    """A time as the store's clock counts it."""
    return (at - _EPOCH) // MILLISECOND


def to_datetime(at: int) -> datetime:
    """A time of the store's clock as a datetime."""
    return _EPOCH + at * MILLISECOND


def to_datetime_or_none(at: int | None) -> datetime | None:
    """As `to_datetime`, for a time that may be missing."""
    return None if at is None else to_datetime(at)


@dataclass(slots=True)
class Row:
    """A message in the ledger: as it was accepted, and its state."""

    message: NewMessage
    entry: Entry
    recipient_id: RecipientId | None
    created_at: int
    events: list[Stamped]
    number: int = field(default_factory=count(1).__next__)  # in the order of their arrival


@dataclass(slots=True, eq=False)
class Job:
    """The place of an unfinished message in the queue; ready when it is not parked.

    A leased job is a parked job: ``parked_until`` is its due time, lease end or hold end.
    """

    id: MessageId
    kind: KindName
    tenant: TenantId
    priority: int
    due_at: int
    expires_at: int
    parked_until: int | None
    claim: ClaimId | None = None
    claims: int = 0

    @property
    def order(self) -> tuple[int, int, MessageId]:
        """Inside a tenant: priority, then due time, then id."""
        return self.priority, self.due_at, self.id

    def is_leased(self, now: int) -> bool:
        """True if a live lease or hold is on it."""
        return self.claim is not None and is_live(self.parked_until, now)

    def wakes_at(self, now: int) -> int:
        """The end of its parking; a lease end that no lease can have is a clock's step back."""
        if self.parked_until is None:
            return FAR
        is_impossible = self.claim is not None and self.parked_until > now + LONGEST_HOLD_MS
        return now if is_impossible else self.parked_until

    def ready(self) -> None:
        """End the parking and any claim; the number of claims stays known."""
        self.parked_until = None
        self.claim = None


def in_parked_order(jobs: Iterable[Job]) -> list[Job]:
    """Parked jobs, the earliest first."""
    return sorted(jobs, key=lambda job: (job.parked_until or 0, job.id))


@dataclass(slots=True, eq=False)
class Seat:
    """A tenant's position among the others of one kind; outside the ring until ``wakes_at``, in it with None."""

    kind: KindName
    tenant: TenantId
    wakes_at: int | None
    vt: int = 0
    last_turn: int = 0
    since_turn: int = 0  # the last turn before it came into the ring
    processed: int = 0
    last_processed_at: int | None = None
    consecutive: int = 0
    jobs: dict[MessageId, Job] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int, TenantId, KindName]:
        """The order of turns: least virtual time, ties to the least recently served."""
        return self.vt, self.last_turn, self.tenant, self.kind

    def due(self, now: int) -> list[Job]:
        """Its parked jobs whose time has come, the longest due first."""
        return in_parked_order(job for job in self.jobs.values() if job.wakes_at(now) <= now)


@dataclass(slots=True)
class KindClock:
    """The fairness clock of a kind: V, the number of the last turn, and the last time it was seen."""

    v: int = 0
    turn: int = 0
    seen_at: int = 0


@dataclass(slots=True)
class Lead:
    """The leader of a maintenance task, and its term."""

    holder: str
    until: int
    seen_at: int


@dataclass(slots=True)
class Request:
    """The meaning of an idempotency key: enough to answer it again, even without the message."""

    digest: str
    message: MessageId
    recipient_id: RecipientId | None
    request_id: str
    created_at: int

    def replayed(self) -> Replayed:
        """The first answer, again."""
        received_at = to_datetime(self.created_at)
        return Replayed(self.message, received_at, self.recipient_id, self.request_id)


class Tables:
    """Everything in a model."""

    def __init__(
        self, *, clock: Callable[[], int], fairness: Fairness, dead_letter_ttl: timedelta
    ) -> None:
        self.now = clock
        self.fairness = fairness
        self.tuned: Fairness | None = None
        self.dead_letter_ttl = dead_letter_ttl

        self.rows: dict[MessageId, Row] = {}
        self.contents: dict[MessageId, str] = {}
        self.dead_letters: dict[MessageId, DeadLetter] = {}  # without their contents
        self.recipients: dict[RecipientId, Recipient] = {}
        self.leads: dict[str, Lead] = {}

        self.jobs: dict[MessageId, Job] = {}
        self.seats: dict[KindName, dict[TenantId, Seat]] = {}
        self.clocks: dict[KindName, KindClock] = {}

        self.tenants: dict[TenantId, Tenant] = {}
        self.tiers: dict[str, float] = {}
        self.requests: dict[tuple[TenantId, str], Request] = {}  # by their idempotency key
        self.api_counts: dict[TenantId, list[tuple[int, int, int]]] = {}
        self.limits: dict[KindName, SendLimit] = {}
        self.next_token_us: dict[TenantId, int] = {}
        self.draws: dict[KindName, list[Draw]] = {}  # from the send limits

    # --- requests -----------------------------------------------------------------------------

    def first_under(self, key: IdempotencyKey, tenant: TenantId, now: int) -> Request | None:
        """The meaning of a key of the tenant, unless it is unknown or expired."""
        first = self.requests.get((tenant, key.key))
        return None if first is None or first.created_at + KEY_LIFE_MS <= now else first

    # --- tenants ------------------------------------------------------------------------------

    def current_fairness(self) -> Fairness:
        """The settings in force."""
        return self.tuned or self.fairness

    def stride_of(self, tenant: Tenant) -> int:
        """Cost of a job of the tenant in virtual time: its own weight, else its tier's, else 1."""
        weight = tenant.weight
        if weight is None and tenant.tier is not None:
            weight = self.tiers.get(tenant.tier)
        return stride(1.0 if weight is None else weight)

    def pace_of(self, tenant: TenantId) -> Pace | None:
        """The tenant's send rate."""
        rate = self.tenants[tenant].rate_per_second
        return None if rate is None else Pace.per_second(rate)

    def window_of(self, kind: KindName) -> Window | None:
        """The send limit that all claims of the kind share."""
        limit = self.limits.get(kind)
        return None if limit is None else Window.of(limit)

    def draws_of(self, kind: KindName) -> list[Draw]:
        """The draws from it."""
        return self.draws.get(kind, [])

    def limited_until(self, kind: KindName, now: int) -> int | None:
        """The time at which the send limit of the kind allows the next job; None if it does now."""
        window = self.window_of(kind)
        if window is None or window.left(self.draws_of(kind), now):
            return None
        return window.wakes_at(self.draws_of(kind), now)

    def seats_of(self, tenant: TenantId) -> list[Seat]:
        """The tenant's seats, one per kind that it ever had a job of."""
        return [seats[tenant] for seats in self.seats.values() if tenant in seats]

    def draw(self, tenant: TenantId, count: int, now: int) -> None:
        """Draw the tokens of this many jobs from the tenant's rate."""
        if pace := self.pace_of(tenant):
            drawn = pace.drawn(self.next_token_us[tenant], now * 1000, count)
            self.next_token_us[tenant] = drawn

    def refund(self, kind: KindName, tenant: TenantId, claim: ClaimId) -> None:
        """Give the tokens of one job back."""
        if pace := self.pace_of(tenant):
            self.next_token_us[tenant] -= pace.interval_us
        self.draws[kind] = undrawn(self.draws_of(kind), claim, 1)

    # --- queue --------------------------------------------------------------------------------

    def enqueue(self, row: Row, now: int) -> None:
        """Give the message a job: ready, or parked until it is due."""
        entry = row.entry
        job = Job(
            id=entry.id,
            kind=entry.kind,
            tenant=entry.tenant,
            priority=row.message.priority,
            due_at=entry.due_at,
            expires_at=entry.expires_at,
            parked_until=entry.due_at if entry.due_at > now else None,
        )
        self.touch(job.kind, job.tenant, job.due_at)
        self.jobs[job.id] = job
        self.seats[job.kind][job.tenant].jobs[job.id] = job

    def drop(self, job: Job) -> None:
        """Take the job out of the queue."""
        del self.jobs[job.id]
        del self.seats[job.kind][job.tenant].jobs[job.id]

    def touch(self, kind: KindName, tenant: TenantId, at: int) -> None:
        """See that the seat is looked at by then; only a claim moves it into or out of the ring."""
        seats = self.seats.setdefault(kind, {})
        seat = seats.setdefault(tenant, Seat(kind, tenant, at))
        if seat.wakes_at is not None:
            seat.wakes_at = min(seat.wakes_at, at)

    def free(self, tenant: TenantId, now: int) -> None:
        """A slot of the tenant became free: a seat that waits at the cap may look again."""
        if self.tenants[tenant].cap is None:
            return
        for seat in self.seats_of(tenant):
            self.touch(seat.kind, tenant, now)

    # --- ledger -------------------------------------------------------------------------------

    def apply(self, row: Row, change: Change, now: int) -> None:
        """Write the remaining changes of a rule, in addition to the entry."""
        row.events.extend(change.events)
        job = self.jobs.get(row.entry.id)
        if job is not None and (change.drop_job or change.park_until is not None):
            self._end_claim(job, change.park_until, now)
        if change.buried is not None:
            self.dead_letters[row.entry.id] = self._letter(row, change.buried, now)
        if change.unburied:
            self.dead_letters.pop(row.entry.id, None)

    def _end_claim(self, job: Job, park_until: int | None, now: int) -> None:
        was_claimed = job.claim is not None
        if park_until is None:
            self.drop(job)
        else:
            self._park(job, park_until, now)
        if was_claimed:
            self.free(job.tenant, now)

    def _park(self, job: Job, until: int, now: int) -> None:
        job.ready()
        job.due_at = until
        job.claims = 0
        if until > now:
            job.parked_until = until
        self.touch(job.kind, job.tenant, until)

    def _letter(self, row: Row, buried: NewDeadLetter, now: int) -> DeadLetter:
        known = self.dead_letters.get(row.entry.id)
        return DeadLetter(
            id=row.entry.id,
            tenant=row.entry.tenant,
            kind=row.entry.kind,
            content="",  # the ledger has it
            reason=buried.reason,
            failed_attempts=buried.failed_attempts,
            failure=buried.failure,
            failed_at=to_datetime(now),
            enqueued_at=to_datetime(row.created_at),
            moved_at=to_datetime(now),
            ttl=self.dead_letter_ttl,
            redriven_at=None,
            group=buried.group,
            waits_for=buried.waits_for,
            automatic_rounds=known.automatic_rounds if known else 0,
            waits_since=to_datetime(now) if buried.waits_for else None,
        )
