"""The panels of the dashboards: of the metrics' definitions, in rows by topic, with the alerts that belong to them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from carteiro.observability.metrics import definitions as the
from carteiro.observability.metrics.definitions import Metric
from carteiro.tickets.alerts import ALERTMANAGER_UP
from carteiro.tickets.archive import metrics as archive
from carteiro.tickets.consume import metrics as tickets

_TOP = 10


class Panel(NamedTuple):
    """Expressions by their legend. Alerts of ``alerts`` have their threshold on it, those of ``linked`` only a link."""

    title: str
    lines: Mapping[str, str]
    unit: str = "short"
    told: str = ""
    alerts: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()


Item: TypeAlias = Metric | Panel


# --- expressions ------------------------------------------------------------------------------


def of(metric: Metric, matching: str = "", *, part: str = "") -> str:
    """The series of a metric, of the chosen job."""
    matchers = ", ".join(each for each in ('job=~"$job"', matching) if each)
    return f"{metric.full_name}{part}{{{matchers}}}"


def rate(metric: Metric, *by: str, matching: str = "", part: str = "") -> str:
    """The growth of a counter in a second, of all processes together."""
    return f"sum{_by(by)}(rate({of(metric, matching, part=part)}[$__rate_interval]))"


def grown(metric: Metric, matching: str = "") -> str:
    """The growth of a counter in an hour, of all processes together."""
    return f"sum(increase({of(metric, matching)}[1h]))"


def most(metric: Metric, *by: str) -> str:
    """The largest value of a gauge: those of the store are the same in every process."""
    return f"max{_by(by)}({of(metric)})"


def quantile(share: float, metric: Metric, *by: str) -> str:
    """A percentile of a histogram."""
    return f"histogram_quantile({share}, {rate(metric, 'le', *by, part='_bucket')})"


def top(expression: str) -> str:
    """The largest series."""
    return f"topk({_TOP}, {expression})"


def _by(labels: Sequence[str]) -> str:
    return f" by ({', '.join(labels)}) " if labels else ""


def panel_of(metric: Metric) -> Panel:
    """The usual panel of a metric."""
    words = metric.name.removesuffix("_total").removesuffix("_bytes").split("_")
    title = " ".join(each for each in words if each not in {"seconds", "timestamp"}).capitalize()
    legend = " ".join(f"{{{{{each}}}}}" for each in metric.labels) or title.lower()
    told = f"{metric.told} `{metric.full_name}`"
    many = top if metric.labels else str
    match metric.type:
        case "counter":
            return Panel(title, {legend: many(rate(metric, *metric.labels))}, "cps", told)
        case "gauge":
            unit = _unit_of(metric)
            return Panel(title, {legend: many(most(metric, *metric.labels))}, unit, told)
        case "histogram":
            lines = {
                f"p{share * 100:g} {legend}": quantile(share, metric, *metric.labels)
                for share in (0.5, 0.95)
            }
            return Panel(title, lines, _unit_of(metric), told)


def _unit_of(metric: Metric) -> str:
    words = metric.name.split("_")
    if "timestamp" in words:
        return "dateTimeFromNow"
    units = {"seconds": "s", "bytes": "bytes", "share": "percentunit"}
    return next((unit for word, unit in units.items() if word in words), "short")


# --- the gateway ------------------------------------------------------------------------------

_ENDED = 'state=~"SENT|FAILED|EXPIRED"'
_DIED = 'state=~"FAILED|EXPIRED"'
_FINAL, _MOVES = the.PIPELINE_FINAL_STATE, the.PIPELINE_STATE_TRANSITIONS

GATEWAY: Mapping[str, Sequence[Item]] = {
    "Overview": (
        Panel(
            "Messages",
            {
                "accepted": rate(_MOVES, matching='state="ENQUEUED"'),
                "sent": rate(_FINAL, matching='state="SENT"'),
                "retried": rate(the.PIPELINE_RETRY_COUNT),
                "dead": rate(_FINAL, matching=_DIED),
                "cancelled": rate(_FINAL, matching='state="CANCELLED"'),
            },
            "cps",
            "Messages of all kinds, in a second.",
        ),
        Panel(
            "Time to delivery",
            {"p50": most(the.DELIVERY_P50), "p95": most(the.DELIVERY_P95)},
            "s",
            "From accept to sent, of the last 15 minutes.",
            ("DeliverySlow",),
        ),
        Panel(
            "Oldest waiting job",
            {"{{kind}}": most(the.QUEUE_OLDEST_AGE, "kind")},
            "s",
            the.QUEUE_OLDEST_AGE.told,
            ("QueueAgeHigh",),
        ),
        Panel("In flight", {"{{kind}}": most(the.IN_FLIGHT, "kind")}, told=the.IN_FLIGHT.told),
        Panel(
            "Dead letters",
            {"all tenants": most(the.DLQ_SIZE)},
            told=the.DLQ_SIZE.told,
            alerts=("ManyDeadLetters",),
        ),
        Panel(
            "Share of dead letters",
            {"last hour": f"{grown(_FINAL, _DIED)} / {grown(_FINAL, _ENDED)}"},
            "percentunit",
            "Dead letters among the messages that ended in the last hour.",
            ("DeadLetterShareHigh",),
        ),
        Panel(
            "Share of failed attempts",
            {"last hour": f"{grown(the.ATTEMPTS_FAILED)} / {grown(the.RETRY_ATTEMPTS)}"},
            "percentunit",
            "Failed attempts among those of the last hour.",
            ("FailureRateHigh",),
        ),
        Panel(
            "Store and processes",
            {
                "store answers": most(the.STORE_UP),
                "processes that reach it": f"sum({of(the.STORE_UP)})",
                "processes": f"count({of(the.STORE_UP)})",
            },
            told=the.STORE_UP.told,
            linked=("StoreUnreachable",),
        ),
        Panel(
            "Time without maintenance",
            {"any process": f"min({of(the.SCHEDULER_HEARTBEAT_AGE)})"},
            "s",
            the.SCHEDULER_HEARTBEAT_AGE.told,
            ("SchedulerSilent",),
        ),
    ),
    "Providers": (
        Panel(
            "Calls",
            {"{{provider}}": rate(the.PROVIDER_LATENCY, "provider", part="_count")},
            "cps",
            "Calls of providers, in a second.",
        ),
        the.PROVIDER_LATENCY,
        the.PROVIDER_ERRORS,
        Panel(
            "Circuits that are open",
            {
                "{{provider}}": f"sum by (provider) ({of(the.PROVIDER_OPEN)})",
            },
            told="Processes in which the circuit of the provider is open.",
            linked=("CircuitOpen",),
        ),
        Panel(
            "Time since the circuit opened",
            {"{{provider}}": most(the.PROVIDER_OPEN_SECONDS, "provider")},
            "s",
            the.PROVIDER_OPEN_SECONDS.told,
            ("CircuitOpen",),
        ),
        Panel(
            "Time since a circuit last opened",
            {"{{provider}}": f"time() - {most(the.PROVIDER_TROUBLE, 'provider')}"},
            "s",
            the.PROVIDER_TROUBLE.told,
        ),
        the.PROVIDER_RATE,
        the.PROVIDER_HELD_BACK,
        the.FEEDBACK_EVENTS,
    ),
    "Tenants": (
        the.TENANT_JOBS_PROCESSED,
        Panel(
            "Dead letters by tenant",
            {
                "{{tenant}}": top(most(the.DLQ_SIZE_BY_COMPANY, "tenant")),
                "the most": most(the.DLQ_SIZE_BY_COMPANY_MAX),
            },
            told=the.DLQ_SIZE_BY_COMPANY.told,
            alerts=("TenantManyDeadLetters",),
        ),
        Panel(
            "Templates that fail",
            {"{{tenant}} {{template}}": top(most(the.TEMPLATE_FAILURES, "tenant", "template"))},
            "percentunit",
            the.TEMPLATE_FAILURES.told,
            ("TemplateFails",),
        ),
        the.TENANT_ROUNDS_WITHOUT_PROCESSING,
        the.TENANT_CURRENT_PRIORITY,
        the.TENANT_CONSECUTIVE_BATCH,
    ),
    "Attempts": (
        Panel("By attempt", {"{{attempt}}": rate(the.RETRY_ATTEMPTS, "attempt")}, "cps"),
        Panel(
            "Success by attempt",
            {"{{attempt}}": f"avg by (attempt) ({of(the.RETRY_SUCCESS_RATE)})"},
            "percentunit",
            the.RETRY_SUCCESS_RATE.told,
        ),
        Panel(
            "Failures by category",
            {"{{category}}": rate(the.ERRORS, "category")},
            "cps",
            the.ERRORS.told,
            linked=("ErrorMixChanged",),
        ),
        Panel("Failures by code", {"{{code}}": top(rate(the.ERRORS, "code"))}, "cps"),
        Panel(
            "Unknown outcomes",
            {"in doubt": rate(the.IN_DOUBT), "late results": rate(the.LATE_RESULTS)},
            "cps",
            "Attempts with an unknown outcome, and results after the job was reassigned.",
        ),
    ),
    "Stores and queue": (
        Panel("Unfinished jobs", {"{{kind}}": most(the.QUEUE_DEPTH, "kind")}),
        Panel(
            "Commits and claims, p95",
            {
                each.name.partition("_")[0]: quantile(0.95, each)
                for each in (
                    *(the.ACCEPT_SECONDS, the.CLAIM_SECONDS),
                    *(the.DECLARE_SECONDS, the.SETTLE_SECONDS),
                )
            },
            "s",
            "Time of one commit of a list, and of one claim.",
        ),
        Panel(
            "Memory of the queue in Redis",
            {
                "used": f"max({of(the.QUEUE_MEMORY_USED)} / ({of(the.QUEUE_MEMORY_MAX)} > 0))",
            },
            "percentunit",
            "Used share of its limit; absent without a limit.",
            ("QueueMemoryHigh", "QueueMemoryCritical"),
        ),
        Panel(
            "Refusals of the queue in Redis",
            {
                "connections": f"max(increase({of(the.QUEUE_REJECTED)}[5m]))",
                "commands, out of memory": f"max(increase({of(the.QUEUE_OUT_OF_MEMORY)}[5m]))",
            },
            told="In five minutes.",
            alerts=("QueueConnectionsRejected", "QueueOutOfMemory"),
        ),
        Panel(
            "Table queue, pending",
            {"e-mails": most(the.TABLE_QUEUE_PENDING)},
            told=the.TABLE_QUEUE_PENDING.told,
            alerts=("TableQueuePending",),
        ),
        Panel("HTTP answers", {"{{status}}": rate(the.HTTP_REQUESTS, "status")}, "reqps"),
        Panel(
            "HTTP requests by route",
            {"{{method}} {{route}}": top(rate(the.HTTP_REQUESTS, "method", "route"))},
            "reqps",
        ),
    ),
}

# --- the ticket lane --------------------------------------------------------------------------


def _sum(metric: Metric) -> str:
    return f"sum({of(metric)})"


_WAITING = of(archive.IN_ARCHIVE, 'state=~"dead|redriving"')


TICKETS: Mapping[str, Sequence[Item]] = {
    "Overview": (
        Panel(
            "Tickets",
            {"done": rate(tickets.DONE), "failed executions": rate(tickets.FAILED)},
            "cps",
            "Tickets in a second.",
        ),
        Panel(
            "Dead tickets",
            {"all types": rate(tickets.DLQ_MESSAGES)},
            "cps",
            tickets.DLQ_MESSAGES.told,
            ("FlowCHighDLQRate",),
        ),
        Panel(
            "Lag",
            {"records": _sum(tickets.LAG)},
            told=tickets.LAG.told,
            linked=("TicketsStandStill", "TicketWorkersMissing"),
        ),
        Panel(
            "Dead tickets that wait for people",
            {"all types": f"sum(max by (state, task_type) ({_WAITING}))"},
            told=archive.IN_ARCHIVE.told,
            alerts=("FlowCDLQMessagesAccumulating",),
        ),
        Panel(
            "Paused types",
            {"{{task_type}}": most(tickets.PAUSED, "task_type")},
            told=tickets.PAUSED.told,
            alerts=("TicketsPaused",),
        ),
        Panel(
            "Held keys",
            {"keys": _sum(tickets.HELD_KEYS)},
            told=tickets.HELD_KEYS.told,
            linked=("TicketKeysHeld",),
        ),
        Panel(
            "Servers",
            {
                "Redis": f"min({of(tickets.REDIS_UP)})",
                "MongoDB": f"min({of(archive.ARCHIVE_UP)})",
                "Alertmanager": f"min({of(ALERTMANAGER_UP)})",
            },
            told="1: it answers; 0: it is down.",
            linked=("TicketsWithoutRedis", "TicketArchiveAway", "TicketAlertmanagerAway"),
        ),
    ),
    "Types": (
        tickets.DONE,
        tickets.FAILED,
        tickets.RETRY_COUNT,
    ),
    "Dead letters": (
        tickets.DLQ_MESSAGES,
        Panel(
            "Failed tries to publish a dead letter",
            {"{{error_type}}": rate(tickets.DLQ_PUBLISH_ERRORS, "error_type")},
            "cps",
            tickets.DLQ_PUBLISH_ERRORS.told,
            ("FlowCDLQPublishFailures",),
        ),
        archive.IN_ARCHIVE,
    ),
    "Archive": (
        archive.ARCHIVED,
        Panel(
            "Records to archive",
            {"records": _sum(archive.ARCHIVE_LAG)},
            told=archive.ARCHIVE_LAG.told,
            alerts=("TicketArchiveLags",),
            linked=("TicketArchiveMissing",),
        ),
        archive.OLDEST_UNARCHIVED,
    ),
}
