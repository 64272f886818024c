"""The table of alerts: their definitions, and the conditions that hold.

Prometheus' rules, the page of the reference and the findings of `carteiro.maintenance.watch` come from it. A condition
holds while its value is above its threshold.
"""

from collections.abc import Iterator
from datetime import timedelta
from heapq import nlargest
from operator import itemgetter
from typing import Final

from carteiro.model.alerts import About, AlertDefinition, Finding, Severity, Unit
from carteiro.policy.alert_values import HOUR, MEASURES, RECENT, REFUSALS, Seen, Thresholds

# Findings of one alert: the highest values. One that is left out seems to be over, so there are enough for all tenants.
MOST_SUBJECTS: Final = 10_000
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


def holding(seen: Seen, thresholds: Thresholds) -> list[Finding]:
    """The conditions that hold, and those that are unknown."""
    return [each for known in definitions(thresholds) for each in _found(known, seen, thresholds)]


def _found(alert: AlertDefinition, seen: Seen, thresholds: Thresholds) -> Iterator[Finding]:
    measured = MEASURES[alert.name](seen, thresholds)
    if measured is None:
        yield Finding(alert.name, "", 0, alert.threshold, is_known=False)
        return
    for subject, number in nlargest(MOST_SUBJECTS, measured, key=itemgetter(1)):
        if number > alert.threshold:
            yield Finding(alert.name, subject, number, alert.threshold)


def definitions(thresholds: Thresholds) -> list[AlertDefinition]:
    """Every alert, with its threshold in force."""
    least, failures = thresholds.min_messages, thresholds.error_mix_failures
    return [
        AlertDefinition(
            name="ManyDeadLetters",
            severity=Severity.CRITICAL,
            condition="There are many dead letters.",
            threshold=thresholds.dead_letters,
            action="Find their cause, remove it, then redrive them: carteiro dead group",
            runbook=_GROW,
            setting="dead_letters",
            summary=f"{_NUMBER} dead letters",
            expression="max(carteiro_dlq_size)",
        ),
        AlertDefinition(
            name="DeadLetterShareHigh",
            severity=Severity.CRITICAL,
            condition=f"A large share of the messages that ended became dead letters. It needs {least} such messages.",
            window=HOUR,
            threshold=thresholds.dead_letter_share,
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
            threshold=thresholds.tenant_dead_letters,
            action="Tell the tenant what its messages died of: carteiro dead group --tenant TENANT",
            for_tenant="Many of your messages could not be delivered and wait as dead letters."
            " GET /v1/emails?status=FAILED lists them, GET /v1/emails/ID has the reason of one."
            " Remove the cause, then ask the operators of this service to send them again.",
            runbook=_GROW,
            setting="tenant_dead_letters",
            summary=f"{_NUMBER} dead letters of tenant {{{{ $labels.tenant }}}}",
            expression="max by (tenant) (carteiro_dlq_size_by_company)",
        ),
        AlertDefinition(
            name="FailureRateHigh",
            severity=Severity.CRITICAL,
            condition=f"A large share of the attempts failed. It needs {least} attempts.",
            window=HOUR,
            threshold=thresholds.failure_rate,
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
            condition=f"A large share of the messages of a template became dead letters. It needs {least} messages.",
            window=HOUR,
            threshold=thresholds.template_failure_rate,
            action="Correct the template, or go back to its last version:"
            " carteiro template ls --tenant TENANT --type TEMPLATE",
            for_tenant="Many messages of your template TEMPLATE could not be delivered in the last hour."
            " GET /v1/emails?status=FAILED lists them, GET /v1/emails/ID has the reason of one."
            " Correct the template with PUT /v1/templates/TEMPLATE, or its data if they are at fault.",
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
            condition="The categories of failures differ from those of the same hour yesterday"
            f" (total variation distance), with at least {failures} failures in each.",
            window=HOUR,
            threshold=thresholds.error_mix,
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
            condition="The 95th percentile of the time from accept to sent is high.",
            window=RECENT,
            threshold=thresholds.delivery_p95.total_seconds(),
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
            condition="The 95th percentile of the age of the oldest waiting job, looked at once a minute, is high.",
            window=RECENT,
            threshold=thresholds.queue_age_p95.total_seconds(),
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
            condition="Many of the newest 1000 e-mails that were put in by SQL are pending.",
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
            condition="No worker and no run from cron did any maintenance.",
            threshold=thresholds.scheduler_silent.total_seconds(),
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
            threshold=thresholds.circuit_open.total_seconds(),
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
            condition="No process reaches the queue in Redis. A Postgres that is down is reported by Prometheus only:"
            " Carteiro keeps its alerts there.",
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
            condition="The queue in Redis uses a large share of its memory.",
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
            condition="The queue in Redis uses nearly all of its memory.",
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
            condition="The server of the queue rejected connections, as it has too many.",
            window=REFUSALS,
            threshold=thresholds.queue_rejected,
            action="Raise maxclients, or find who holds the connections: redis-cli CLIENT LIST",
            runbook=f"{_REDIS}#rejected-connections",
            setting="queue_rejected",
            summary=f"Connections that Redis rejected in five minutes: {_NUMBER}",
            expression="max(increase(carteiro_queue_rejected_connections_total[5m]))",
        ),
        AlertDefinition(
            name="QueueOutOfMemory",
            severity=Severity.CRITICAL,
            condition="The server of the queue refused commands for lack of memory.",
            window=REFUSALS,
            threshold=thresholds.queue_out_of_memory,
            action="Raise maxmemory now: messages are accepted and not sent",
            runbook=_REDIS,
            setting="queue_out_of_memory",
            summary=f"Commands that Redis refused in five minutes for lack of memory: {_NUMBER}",
            expression="max(increase(carteiro_queue_out_of_memory_errors_total[5m]))",
        ),
    ]
