"""The dashboards for Grafana, as it imports them: rows of panels, with thresholds and runbooks of the alerts."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from alerts_page import default_alerts
from carteiro.model.alerts import AlertDefinition, Severity
from carteiro.observability.metrics import definitions as the
from carteiro.observability.metrics.definitions import Metric
from carteiro.tickets.archive import metrics as archive
from carteiro.tickets.consume import metrics as tickets
from dashboard_panels import GATEWAY, TICKETS, Item, Panel, panel_of

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_SCHEMA = 39
_TICKET_RULES = Path(__file__).parents[1] / "deploy/prometheus/tickets.rules.yaml"
_COLOURS = {Severity.WARNING: "orange", Severity.CRITICAL: "red"}

DASHBOARDS: Mapping[str, tuple[str, Mapping[str, Sequence[Item]], Sequence[Metric]]] = {
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
        "description": "Written by `make docs` from docs/dashboard_panels.py and the definitions of the metrics.",
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


def _panel(item: Item) -> Panel:
    return panel_of(item) if isinstance(item, Metric) else item


def _laid_out(
    rows: Mapping[str, Sequence[Item]], alerts: Mapping[str, AlertDefinition]
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
        "targets": [*_targets(panel)],
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


def _targets(panel: Panel) -> Iterator[dict[str, Any]]:
    for index, (legend, expression) in enumerate(panel.lines.items()):
        yield {
            "refId": chr(ord("A") + index),
            "expr": expression,
            "legendFormat": legend,
            "datasource": _SOURCE,
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
