"""The dashboards for Grafana: panels of the metrics' definitions, with the thresholds and runbooks of the alerts."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml  # type: ignore[import-untyped]

from alerts_page import default_alerts
from carteiro.model.alerts import AlertDefinition, Severity
from carteiro.observability.metrics import definitions as the
from carteiro.observability.metrics.definitions import Metric
from carteiro.tickets.alerts import ALERTMANAGER_UP
from carteiro.tickets.archive import metrics as archive
from carteiro.tickets.consume import metrics as tickets

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_TOP = 10
_SCHEMA = 39
_TICKET_RULES = Path(__file__).parents[1] / "deploy/prometheus/tickets.rules.yaml"
_COLOURS = {Severity.WARNING: "orange", Severity.CRITICAL: "red"}


class Panel(NamedTuple):
    """Expressions by their legend. Alerts of ``alerts`` have their threshold on it, those of ``linked`` only a link."""

    title: str
    lines: Mapping[str, str]
    unit: str = "short"
    told: str = ""
    alerts: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()


_Item: TypeAlias = Metric | Panel


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

GATEWAY: Mapping[str, Sequence[_Item]] = {
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


TICKETS: Mapping[str, Sequence[_Item]] = {
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

# --- documents --------------------------------------------------------------------------------

DASHBOARDS: Mapping[str, tuple[str, Mapping[str, Sequence[_Item]], Sequence[Metric]]] = {
    "carteiro": ("Carteiro", GATEWAY, [*the.METRICS.values()]),
    "tickets": ("Carteiro: tickets", TICKETS, [*tickets.ALL, *archive.OWN]),
}


def dashboard(uid: str) -> str:
    """One dashboard, as Grafana imports it: metrics without a panel of their own have one in the last row."""
    title, rows, metrics = DASHBOARDS[uid]
    asked = json.dumps([_panel(item).lines for items in rows.values() for item in items])
    others = [
        each for each in metrics if not re.search(rf"\b{each.full_name}(_bucket|_count)?\{{", asked)
    ]
    alerts = {each.name: each for each in [*default_alerts(), *_ticket_alerts()]}
    document = {
        "uid": uid,
        "title": title,
        "description": "Written by `make docs` from docs/dashboards.py and the definitions of the metrics.",
        "tags": ["carteiro"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables(metrics[0] if uid == "tickets" else the.STORE_UP)},
        "panels": [*_laid_out({**rows, "Others": others}, alerts)],
    }
    return json.dumps(document, indent=1) + "\n"


def _ticket_alerts() -> Iterator[AlertDefinition]:
    """The alerts of the ticket lane, from their rules; one that fires below a number has no threshold here."""
    for group in yaml.safe_load(_TICKET_RULES.read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            threshold = re.search(r"> ([\d.]+)$", rule["expr"])
            action = re.sub(r"{{ \$labels\.(\w+) }}", r"the \1", rule["annotations"]["action"])
            yield AlertDefinition(
                name=rule["alert"],
                severity=Severity(rule["labels"]["severity"]),
                condition=f"{action}.",
                threshold=float(threshold[1]) if threshold else 0,
                action=action,
                runbook=rule["annotations"]["runbook"],
            )


def _variables(metric: Metric) -> list[dict[str, Any]]:
    jobs = f"label_values({metric.full_name}, job)"
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "job",
            "label": "Job",
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": jobs, "refId": "job"},
            "refresh": 2,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        },
        {
            "name": "runbooks",
            "label": "URL of the runbooks",
            "type": "textbox",
            "query": "",
            "current": {"text": "", "value": ""},
        },
    ]


def _panel(item: _Item) -> Panel:
    return panel_of(item) if isinstance(item, Metric) else item


def _laid_out(
    rows: Mapping[str, Sequence[_Item]], alerts: Mapping[str, AlertDefinition]
) -> Iterator[dict[str, Any]]:
    """The rows one below the other, their panels from left to right."""
    number, y = 0, 0
    for title, items in rows.items():
        if not items:
            continue
        number += 1
        place = {"x": 0, "y": y, "w": _COLUMNS, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        y += 1
        for index, item in enumerate(items):
            number += 1
            down, across = divmod(index * _WIDTH, _COLUMNS)
            place = {"x": across, "y": y + down * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield {"id": number, "gridPos": place, **_drawn(_panel(item), alerts)}
        y += -(-len(items) * _WIDTH // _COLUMNS) * _HEIGHT


def _drawn(panel: Panel, alerts: Mapping[str, AlertDefinition]) -> dict[str, Any]:
    marked = [alerts[name] for name in panel.alerts]
    linked = [*marked, *[alerts[name] for name in panel.linked]]
    told = [
        panel.told,
        *[f"{each.name}: {each.condition} Runbook: {each.runbook}" for each in linked],
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": "\n\n".join(each for each in told if each),
        "datasource": _SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "expr": expression,
                "legendFormat": legend,
                "datasource": _SOURCE,
            }
            for index, (legend, expression) in enumerate(panel.lines.items())
        ],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"thresholdsStyle": {"mode": "line" if marked else "off"}},
                "thresholds": {"mode": "absolute", "steps": [*_steps(marked)]},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "links": [_link(each) for each in linked],
    }


def _steps(alerts: Iterable[AlertDefinition]) -> Iterator[dict[str, Any]]:
    yield {"color": "green", "value": None}
    for each in sorted(alerts, key=lambda alert: alert.threshold):
        yield {"color": _COLOURS[each.severity], "value": each.threshold}


def _link(alert: AlertDefinition) -> dict[str, Any]:
    page = alert.runbook.removeprefix("docs/runbooks/")
    return {
        "title": f"Runbook of {alert.name}",
        "url": f"${{runbooks:raw}}/{page}",
        "targetBlank": True,
    }
