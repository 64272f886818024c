"""The values that alerts compare with their thresholds, from what the store has."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from carteiro.model import TenantId, value
from carteiro.model.figures import Figures, TemplateResult
from carteiro.model.reports import QueueReport, Report
from carteiro.policy.kpis import count, delay_within

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
RECENT: Final = timedelta(minutes=15)
REFUSALS: Final = timedelta(minutes=5)
_MINUTE: Final = timedelta(minutes=1)
_P95: Final = 0.95


@value
class Thresholds:
    """The settings of [alerts]; shares are 0 to 1."""

    dead_letters: int
    dead_letter_share: float
    tenant_dead_letters: int
    failure_rate: float
    template_failure_rate: float
    min_messages: int
    delivery_p95: timedelta
    queue_age_p95: timedelta
    table_queue_pending: int
    scheduler_silent: timedelta
    circuit_open: timedelta
    error_mix: float
    error_mix_failures: int
    queue_memory_high: float
    queue_memory_critical: float
    queue_rejected: int
    queue_out_of_memory: int


@value
class Seen:
    """Everything that is looked at, at one moment. Figures are those that are folded into minutes."""

    now: datetime
    minutes: Mapping[datetime, Figures]  # of the last hour
    yesterday: Figures  # of the same hour
    # Of the last hour, those with enough messages that fail most.
    templates: Sequence[TemplateResult]
    dead: int
    dead_by_tenant: Sequence[tuple[TenantId, int]]
    last_upkeep: datetime | None
    reports: Sequence[Report]
    has_queue: bool = False  # on a server of its own
    table_queue_pending: int | None = None  # None: applications have no access by SQL


Measured: TypeAlias = Iterable[tuple[str, float]]  # by subject
Measure: TypeAlias = Callable[[Seen, Thresholds], Measured | None]  # None: it is unknown


def _dead_letters(seen: Seen, _: Thresholds) -> Measured:
    yield "", seen.dead


def _dead_by_tenant(seen: Seen, _: Thresholds) -> Measured:
    return seen.dead_by_tenant


def _dead_share(seen: Seen, thresholds: Thresholds) -> Measured:
    figures = added(seen.minutes.values())
    return _share(count(figures, "failed"), count(figures, "sent"), thresholds.min_messages)


def _failure_rate(seen: Seen, thresholds: Thresholds) -> Measured:
    figures = added(seen.minutes.values())
    failed = sum(failures(figures).values())
    return _share(failed, _of(figures, "ended.") - failed, thresholds.min_messages)


def _templates(seen: Seen, thresholds: Thresholds) -> Measured:
    for each in seen.templates:
        for _, share in _share(each.failed, each.sent, thresholds.min_messages):
            yield f"{each.tenant}/{each.template}", share


def _delivery(seen: Seen, _: Thresholds) -> Measured:
    p95 = delivery_time(seen.now, seen.minutes)
    if p95 is not None:
        yield "", p95


def _queue_age(seen: Seen, _: Thresholds) -> Measured:
    yield "", queue_age_p95(seen.now, seen.minutes)


def _table_queue(seen: Seen, _: Thresholds) -> Measured:
    if seen.table_queue_pending is not None:
        yield "", seen.table_queue_pending


def _scheduler(seen: Seen, _: Thresholds) -> Measured:
    if seen.last_upkeep is not None:
        yield "", (seen.now - seen.last_upkeep).total_seconds()


def _circuits(seen: Seen, _: Thresholds) -> Measured:
    since: dict[str, datetime] = {}
    for report in seen.reports:
        for provider, opened in report.circuits.items():
            since[provider] = min(opened, since.get(provider, opened))
    return [(name, (seen.now - opened).total_seconds()) for name, opened in since.items()]


def _error_mix(seen: Seen, thresholds: Thresholds) -> Measured:
    today, yesterday = failures(added(seen.minutes.values())), failures(seen.yesterday)
    if min(today.total(), yesterday.total()) >= max(1, thresholds.error_mix_failures):
        yield "", distance(today, yesterday)


def _memory(seen: Seen, _: Thresholds) -> Measured | None:
    return _of_queue(seen, lambda each: each.max_bytes and each.used_bytes / each.max_bytes)


def _rejected(seen: Seen, _: Thresholds) -> Measured | None:
    return _of_queue(seen, lambda each: each.rejected)


def _out_of_memory(seen: Seen, _: Thresholds) -> Measured | None:
    return _of_queue(seen, lambda each: each.out_of_memory)


def _unreachable(seen: Seen, _: Thresholds) -> Measured | None:
    queues = [each.queue for each in seen.reports if each.queue is not None]
    if not queues:
        return None if seen.has_queue else []
    return [("", all(each.away_since is not None for each in queues))]


def _of_queue(seen: Seen, measured: Callable[[QueueReport], float]) -> Measured | None:
    """The highest value by those that reach the queue; None if nobody does."""
    queues = [each.queue for each in seen.reports if each.queue is not None]
    reached = [measured(each) for each in queues if each.away_since is None]
    if reached:
        return [("", max(reached))]
    return None if queues or seen.has_queue else []


def _share(failed: int, other: int, least: int) -> Iterator[tuple[str, float]]:
    if failed + other >= max(1, least):
        yield "", failed / (failed + other)


def added(many: Iterable[Figures]) -> Figures:
    """The sums of counters; those that are maxima are not meant."""
    sums: Figures = Counter()
    for each in many:
        sums.update(each)
    return sums


def _of(figures: Figures, prefix: str) -> int:
    return sum(max(0, number) for name, number in figures.items() if name.startswith(prefix))


def failures(figures: Figures) -> Counter[str]:
    """Failed attempts by category."""
    found: Counter[str] = Counter()
    for name, number in figures.items():
        if name.startswith("error."):
            found[name.split(".")[1]] += max(0, number)
    return found


def distance(one: Counter[str], other: Counter[str]) -> float:
    """Total variation distance of the shares: 0 if they are the same, 1 if they have nothing in common."""
    ours, theirs = one.total(), other.total()
    apart = sum(abs(one[name] * theirs - other[name] * ours) for name in one | other)
    return apart / (2 * ours * theirs)


def delivery_time(
    now: datetime, minutes: Mapping[datetime, Figures], share: float = _P95
) -> float | None:
    """Seconds from accept to sent that this share of the recently sent messages took at most; None if none was sent."""
    figures = added(each for at, each in minutes.items() if at > now - RECENT - _MINUTE)
    return delay_within(figures, share)


def queue_age_p95(now: datetime, minutes: Mapping[datetime, Figures]) -> float:
    """Seconds: of the recent minutes, the age of the oldest waiting job that 95 % stayed below.

    A minute without a sample had no waiting job.
    """
    recent = [each["max_queue_age_ms"] for at, each in minutes.items() if at > now - RECENT]
    ages = sorted([*recent, *[0] * (RECENT // _MINUTE - len(recent))])
    place = _P95 * (len(ages) - 1)
    low = int(place)
    high = min(low + 1, len(ages) - 1)
    return (ages[low] + (ages[high] - ages[low]) * (place - low)) / 1000


MEASURES: Final[Mapping[str, Measure]] = {
    "ManyDeadLetters": _dead_letters,
    "DeadLetterShareHigh": _dead_share,
    "TenantManyDeadLetters": _dead_by_tenant,
    "FailureRateHigh": _failure_rate,
    "TemplateFails": _templates,
    "ErrorMixChanged": _error_mix,
    "DeliverySlow": _delivery,
    "QueueAgeHigh": _queue_age,
    "TableQueuePending": _table_queue,
    "SchedulerSilent": _scheduler,
    "CircuitOpen": _circuits,
    "StoreUnreachable": _unreachable,
    "QueueMemoryHigh": _memory,
    "QueueMemoryCritical": _memory,
    "QueueConnectionsRejected": _rejected,
    "QueueOutOfMemory": _out_of_memory,
}
