"""Alerts: the one table of their definitions, and the value of each.

Prometheus' rules, the page of the reference and the findings of `carteiro.maintenance.watch` come from this table. A
condition holds while its value is above its threshold.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import accumulate
from typing import Final, TypeAlias

from carteiro.model import ZERO, TenantId, value
from carteiro.model.alerts import About, AlertDefinition, Finding, Severity, Unit
from carteiro.model.figures import Figures, TemplateResult
from carteiro.model.reports import QueueReport, Report
from carteiro.policy.kpis import count
from carteiro.policy.rollups import DELAYS

MOST_SUBJECTS: Final = 200  # findings of one alert: the highest values
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
    templates: Sequence[
        TemplateResult
    ]  # of the last hour, those with enough messages that fail most
    dead: int
    dead_by_tenant: Sequence[tuple[TenantId, int]]
    last_upkeep: datetime | None
    reports: Sequence[Report]
    table_queue_pending: int | None = None  # None: applications have no access by SQL


Measured: TypeAlias = Iterable[tuple[str, float]]  # by subject
Measure: TypeAlias = Callable[[Seen, Thresholds], Measured]


def holding(seen: Seen, thresholds: Thresholds) -> list[Finding]:
    """The conditions that hold."""
    return [
        Finding(each.name, subject, measured, each.threshold)
        for each in definitions(thresholds)
        for subject, measured in nlargest(
            MOST_SUBJECTS, _MEASURES[each.name](seen, thresholds), key=lambda told: told[1]
        )
        if measured > each.threshold
    ]


# --- values


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
    p95 = delivery_p95(seen.now, seen.minutes)
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


def _memory(seen: Seen, _: Thresholds) -> Measured:
    return [("", each.used_bytes / each.max_bytes) for each in _queues(seen) if each.max_bytes][:1]


def _rejected(seen: Seen, _: Thresholds) -> Measured:
    yield "", max([0, *(each.rejected for each in _queues(seen))])


def _out_of_memory(seen: Seen, _: Thresholds) -> Measured:
    yield "", max([0, *(each.out_of_memory for each in _queues(seen))])


def _unreachable(seen: Seen, _: Thresholds) -> Measured:
    queues = [each.queue for each in seen.reports if each.queue is not None]
    yield "", bool(queues) and all(each.away_since is not None for each in queues)


def _queues(seen: Seen) -> list[QueueReport]:
    """The queue as it was seen by those that reach it, the fullest first."""
    queues = [each.queue for each in seen.reports if each.queue and each.queue.away_since is None]
    return sorted(queues, key=lambda each: each.used_bytes / max(1, each.max_bytes), reverse=True)


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


def delivery_p95(now: datetime, minutes: Mapping[datetime, Figures]) -> float | None:
    """Seconds from accept to sent that 95 % of the recently sent messages took at most; None if none was sent.

    Inside a slot of the histogram values are taken to be spread evenly, as by Prometheus.
    """
    figures = added(each for at, each in minutes.items() if at > now - RECENT - _MINUTE)
    slots = [count(figures, f"delay.{slot}") for slot in range(len(DELAYS) + 1)]
    rank = _P95 * sum(slots)
    if not rank:
        return None
    upto = list(accumulate(slots))
    slot = next(slot for slot, number in enumerate(upto) if number >= rank)
    if slot == len(DELAYS):
        return DELAYS[-1] / 1000
    low, high = (0, *DELAYS)[slot], DELAYS[slot]
    return (low + (high - low) * (rank - (upto[slot] - slots[slot])) / slots[slot]) / 1000


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


# --- the table

_MEASURES: Mapping[str, Measure] = {
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
_ENDED = 'carteiro_pipeline_final_state_total{state=~"SENT|FAILED|EXPIRED"}[1h]'
_DIED = 'carteiro_pipeline_final_state_total{state=~"FAILED|EXPIRED"}[1h]'
_ATTEMPTS = "carteiro_retry_attempts_total[1h]"
_ERRORS = "carteiro_errors_total[1h]"
_TODAY = f"sum by (category) (increase({_ERRORS})) / scalar(sum(increase({_ERRORS})))"
_YESTERDAY = (
    f"sum by (category) (increase({_ERRORS} offset 1d))"
    f" / scalar(sum(increase({_ERRORS} offset 1d)))"
)
_MEMORY = "max(carteiro_queue_memory_used_bytes / (carteiro_queue_memory_max_bytes > 0))"
_PERCENT = "{{ $value | humanizePercentage }}"
_NUMBER = "{{ $value | humanize }}"
_TIME = "{{ $value | humanizeDuration }}"
_GROW = "docs/runbooks/dead-letters-grow.md"
_FAILURES = "docs/runbooks/many-failures.md"
_NOTHING = "docs/runbooks/nothing-is-sent.md"
_SLOW = "docs/runbooks/slow-delivery.md"
_REDIS = "docs/runbooks/redis-near-its-limit.md"


def definitions(thresholds: Thresholds) -> list[AlertDefinition]:
    """Every alert, with its threshold in force."""
    least, failures = thresholds.min_messages, thresholds.error_mix_failures
    return [
        AlertDefinition(
            name="ManyDeadLetters",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition="There are many dead letters.",
            window=ZERO,
            threshold=thresholds.dead_letters,
            lasts=ZERO,
            action="Find their cause, remove it, then redrive them: carteiro dead group",
            runbook=_GROW,
            setting="dead_letters",
            summary=f"{_NUMBER} dead letters",
            expression="max(carteiro_dlq_size)",
        ),
        AlertDefinition(
            name="DeadLetterShareHigh",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition=f"A large share of the messages that ended became dead letters, of at least {least}.",
            window=HOUR,
            threshold=thresholds.dead_letter_share,
            lasts=ZERO,
            action="Look what the latest dead letters have in common: carteiro dead group --since 1h",
            runbook=_GROW,
            unit=Unit.SHARE,
            setting="dead_letter_share",
            summary=f"{_PERCENT} of the messages of the last hour became dead letters",
            expression=f"sum(increase({_DIED})) / sum(increase({_ENDED}))",
            given=f"sum(increase({_ENDED})) >= {least}",
        ),
        AlertDefinition(
            name="TenantManyDeadLetters",
            severity=Severity.WARNING,
            about=About.TENANT,
            condition="A tenant has many dead letters.",
            window=ZERO,
            threshold=thresholds.tenant_dead_letters,
            lasts=ZERO,
            action="Tell the tenant what its messages died of: carteiro dead group --tenant TENANT",
            runbook=_GROW,
            setting="tenant_dead_letters",
            summary=f"{_NUMBER} dead letters of tenant {{{{ $labels.tenant }}}}",
            expression="max by (tenant) (carteiro_dlq_size_by_company)",
        ),
        AlertDefinition(
            name="FailureRateHigh",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition=f"A large share of the attempts failed, of at least {least}.",
            window=HOUR,
            threshold=thresholds.failure_rate,
            lasts=ZERO,
            action="Find the code and the category that prevail: carteiro stats",
            runbook=_FAILURES,
            unit=Unit.SHARE,
            setting="failure_rate",
            summary=f"{_PERCENT} of the attempts of the last hour failed",
            expression=f"sum(increase(carteiro_attempts_failed_total[1h])) / sum(increase({_ATTEMPTS}))",
            given=f"sum(increase({_ATTEMPTS})) >= {least}",
        ),
        AlertDefinition(
            name="TemplateFails",
            severity=Severity.WARNING,
            about=About.TEMPLATE,
            condition=f"A large share of the messages of a template became dead letters, of at least {least}.",
            window=HOUR,
            threshold=thresholds.template_failure_rate,
            lasts=ZERO,
            action="Correct the template, or go back to its last version: carteiro template ls",
            runbook="docs/runbooks/template-fails.md",
            unit=Unit.SHARE,
            setting="template_failure_rate",
            summary=f"{_PERCENT} of the messages of template {{{{ $labels.template }}}}"
            " of tenant {{ $labels.tenant }} failed",
            expression="max by (tenant, template) (carteiro_template_failure_share)",
        ),
        AlertDefinition(
            name="ErrorMixChanged",
            severity=Severity.WARNING,
            about=About.INSTALLATION,
            condition="The categories of failures differ from those of the same hour yesterday"
            f" (total variation distance), with at least {failures} failures in each.",
            window=HOUR,
            threshold=thresholds.error_mix,
            lasts=ZERO,
            action="Find the category that is new: carteiro dead group --by category --since 1h",
            runbook=_FAILURES,
            unit=Unit.SHARE,
            setting="error_mix",
            summary=f"{_PERCENT} of the failures are of other categories than yesterday",
            expression=f"sum(abs(({_TODAY} or {_YESTERDAY} * 0) - ({_YESTERDAY} or {_TODAY} * 0))) / 2",
            given=f"sum(increase({_ERRORS})) >= {failures}"
            f" and sum(increase({_ERRORS} offset 1d)) >= {failures}",
        ),
        AlertDefinition(
            name="DeliverySlow",
            severity=Severity.WARNING,
            about=About.INSTALLATION,
            condition="The 95th percentile of the time from accept to sent is high.",
            window=RECENT,
            threshold=thresholds.delivery_p95.total_seconds(),
            lasts=ZERO,
            action="See whether messages wait for a worker, a limit or a provider: carteiro stats",
            runbook=_SLOW,
            unit=Unit.SECONDS,
            setting="delivery_p95_ms",
            summary=f"One message of twenty takes more than {_TIME} to be sent",
            expression="max(carteiro_delivery_p95_seconds)",
        ),
        AlertDefinition(
            name="QueueAgeHigh",
            severity=Severity.WARNING,
            about=About.INSTALLATION,
            condition="The 95th percentile of the age of the oldest waiting job, looked at once a minute, is high.",
            window=RECENT,
            threshold=thresholds.queue_age_p95.total_seconds(),
            lasts=ZERO,
            action="See why the oldest message waits: carteiro stats, carteiro explain",
            runbook=_SLOW,
            unit=Unit.SECONDS,
            setting="queue_age_p95_ms",
            summary=f"The oldest job has waited for {_TIME}",
            expression="quantile_over_time(0.95, max(carteiro_queue_oldest_age_seconds)[15m:1m])",
        ),
        AlertDefinition(
            name="TableQueuePending",
            severity=Severity.WARNING,
            about=About.INSTALLATION,
            condition="Many of the newest 1000 e-mails that were put in by SQL are pending.",
            window=ZERO,
            threshold=thresholds.table_queue_pending,
            lasts=timedelta(minutes=5),
            action="See whether a worker runs, and why the oldest one waits: carteiro stats",
            runbook=_SLOW,
            setting="table_queue_pending",
            summary=f"{_NUMBER} e-mails of email_queue are pending",
            expression="max(carteiro_table_queue_pending)",
        ),
        AlertDefinition(
            name="SchedulerSilent",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition="No worker and no run from cron did any maintenance.",
            window=ZERO,
            threshold=thresholds.scheduler_silent.total_seconds(),
            lasts=ZERO,
            action="Start carteiro worker, or look why cron does not run carteiro process",
            runbook=_NOTHING,
            unit=Unit.SECONDS,
            setting="scheduler_silent_ms",
            summary=f"No worker and no run from cron for {_TIME}",
            expression="min(carteiro_scheduler_heartbeat_age_seconds)",
        ),
        AlertDefinition(
            name="CircuitOpen",
            severity=Severity.CRITICAL,
            about=About.PROVIDER,
            condition="The circuit of a provider stays open in a process.",
            window=ZERO,
            threshold=thresholds.circuit_open.total_seconds(),
            lasts=ZERO,
            action="Check the provider and our account there: carteiro doctor",
            runbook="docs/runbooks/circuit-open.md",
            unit=Unit.SECONDS,
            setting="circuit_open_ms",
            summary=f"The circuit of {{{{ $labels.provider }}}} has been open for {_TIME}",
            expression="max by (provider) (carteiro_provider_open_seconds)",
        ),
        AlertDefinition(
            name="StoreUnreachable",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition="No process reaches the queue in Redis; Prometheus also sees an unreachable store.",
            window=ZERO,
            threshold=0,
            lasts=timedelta(minutes=1),
            action="Repair the server; do not restart Carteiro: carteiro doctor",
            runbook=f"{_NOTHING}#postgres-or-redis-is-down",
            summary="No process reaches the store and its queue",
            expression="1 - max(carteiro_store_up)",
        ),
        AlertDefinition(
            name="QueueMemoryHigh",
            severity=Severity.WARNING,
            about=About.INSTALLATION,
            condition="The queue in Redis uses a large share of its memory.",
            window=ZERO,
            threshold=thresholds.queue_memory_high,
            lasts=timedelta(minutes=5),
            action="Export and purge dead letters, or raise maxmemory: carteiro doctor, carteiro stats",
            runbook=_REDIS,
            unit=Unit.SHARE,
            setting="queue_memory_high",
            summary=f"The queue in Redis uses {_PERCENT} of its memory",
            expression=_MEMORY,
        ),
        AlertDefinition(
            name="QueueMemoryCritical",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition="The queue in Redis uses nearly all of its memory.",
            window=ZERO,
            threshold=thresholds.queue_memory_critical,
            lasts=timedelta(minutes=1),
            action="Raise maxmemory now: when it is full, messages are accepted and not sent",
            runbook=_REDIS,
            unit=Unit.SHARE,
            setting="queue_memory_critical",
            summary=f"The queue in Redis uses {_PERCENT} of its memory",
            expression=_MEMORY,
        ),
        AlertDefinition(
            name="QueueConnectionsRejected",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition="The server of the queue rejected connections, as it has too many.",
            window=REFUSALS,
            threshold=thresholds.queue_rejected,
            lasts=ZERO,
            action="Raise maxclients, or find who holds the connections: redis-cli CLIENT LIST",
            runbook=f"{_REDIS}#rejected-connections",
            setting="queue_rejected",
            summary=f"Connections that Redis rejected in five minutes: {_NUMBER}",
            expression="max(increase(carteiro_queue_rejected_connections_total[5m]))",
        ),
        AlertDefinition(
            name="QueueOutOfMemory",
            severity=Severity.CRITICAL,
            about=About.INSTALLATION,
            condition="The server of the queue refused commands for lack of memory.",
            window=REFUSALS,
            threshold=thresholds.queue_out_of_memory,
            lasts=ZERO,
            action="Raise maxmemory now: messages are accepted and not sent",
            runbook=_REDIS,
            setting="queue_out_of_memory",
            summary=f"Commands that Redis refused in five minutes for lack of memory: {_NUMBER}",
            expression="max(increase(carteiro_queue_out_of_memory_errors_total[5m]))",
        ),
    ]
