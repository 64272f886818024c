"""The dashboards for Grafana: Prometheus accepts their expressions, and they name only what exists."""

import json
import re
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from carteiro.config import load
from carteiro.observability.metrics.definitions import METRICS, Metric
from carteiro.policy.alerts import definitions
from carteiro.tickets.archive import metrics as archive_metrics
from carteiro.tickets.consume import metrics as ticket_metrics
from dashboards import DASHBOARDS, dashboard
from support.pages import REPOSITORY
from support.promtool import check_config, check_rules

GRAFANA = REPOSITORY / "deploy/grafana"
DOCUMENTS: dict[str, dict[str, Any]] = {uid: json.loads(dashboard(uid)) for uid in DASHBOARDS}
PANELS = [
    (uid, panel)
    for uid, each in DOCUMENTS.items()
    for panel in each["panels"]
    if panel["type"] != "row"
]
TARGETS = [(panel, target) for _, panel in PANELS for target in panel["targets"]]
KNOWN: dict[str, Metric] = {
    each.full_name: each for each in (*METRICS.values(), *ticket_metrics.ALL, *archive_metrics.OWN)
}
SERVICES = yaml.safe_load((REPOSITORY / "deploy/compose.yaml").read_text("utf-8"))["services"]

_SERIES = re.compile(r"\b((?:carteiro|worker_agent)_\w+)\{(.*?)\}")
_NAMED = re.compile(r"\b(?:carteiro|worker_agent)_\w+")
_MATCHED = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\bby \((.*?)\)")
_OF_TARGETS = {"job", "instance"}  # labels that Prometheus adds


def _labels(series: str) -> set[str]:
    """The labels of a series; of a metric that does not exist an error."""
    if series in KNOWN:
        assert KNOWN[series].type != "histogram", f"{series} has buckets, a sum and a count"
        return {*KNOWN[series].labels, *_OF_TARGETS}
    name, _, part = series.rpartition("_")
    assert name in KNOWN, series
    assert (KNOWN[name].type, part in {"bucket", "count", "sum"}) == ("histogram", True), series
    return {*KNOWN[name].labels, *_OF_TARGETS, *({"le"} if part == "bucket" else ())}


def test_expressions_name_metrics_and_labels_that_exist() -> None:
    """Prometheus accepts a misspelt one, and its panel stays empty."""
    for _, target in TARGETS:
        expression = target["expr"]
        found = _SERIES.findall(expression)
        assert [name for name, _ in found] == _NAMED.findall(expression), expression
        for name, matchers in found:
            assert set(_MATCHED.findall(matchers)) <= _labels(name), expression
        common = set.intersection(*(_labels(name) for name, _ in found))
        for labels in _GROUPED.findall(expression):
            assert set(labels.split(", ")) <= common, expression


def test_legends_name_labels_of_their_series() -> None:
    """Those that the last aggregation keeps; lines of a panel differ in their legend."""
    for panel, target in TARGETS:
        groups = _GROUPED.findall(target["expr"])
        kept = set(groups[0].split(", ")) if groups and not _is_total(target["expr"]) else set()
        shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))

        assert shown == kept - {"le"}, (panel["title"], target["expr"])
        assert target["legendFormat"]


def _is_total(expression: str) -> bool:
    """True if the outermost aggregation has no labels."""
    return expression.startswith(("sum(", "max(", "min(", "count("))


def test_prometheus_accepts_the_expressions(tmp_path: Path) -> None:
    """With values in place of Grafana's variables."""
    numbers = count()
    rules = [
        {"record": f"panel:{next(numbers)}", "expr": _filled(target["expr"])}
        for _, target in TARGETS
    ]
    file = tmp_path / "panels.rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))

    assert f"{len(TARGETS)} rules found" in check_rules(file)


def _filled(expression: str) -> str:
    filled = expression.replace("$__rate_interval", "5m").replace("$job", ".*")
    assert "$" not in filled
    return filled


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_every_metric_has_a_panel(uid: str) -> None:
    """Of its own, or in the last row."""
    shown = " ".join(
        target["expr"] for panel in _panels(uid) for target in panel.get("targets", ())
    )
    metrics = [each.full_name for each in DASHBOARDS[uid][2]]

    assert metrics
    assert [each for each in metrics if not re.search(rf"\b{each}(_bucket|_count)?{{", shown)] == []


def test_all_metrics_are_of_a_dashboard() -> None:
    shown = {each.full_name for _, _, metrics in DASHBOARDS.values() for each in metrics}

    assert shown == set(KNOWN)


def _panels(uid: str) -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = DOCUMENTS[uid]["panels"]
    return panels


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_panels_have_their_own_number_and_place(uid: str) -> None:
    """Inside the grid, without overlap, in the order of reading; rows are as wide as the grid."""
    panels = _panels(uid)
    ids = [each["id"] for each in panels]
    places = [each["gridPos"] for each in panels]

    assert len(ids) == len({*ids})
    assert all(each["x"] >= 0 and each["x"] + each["w"] <= 24 for each in places)
    assert [each for each in combinations(places, 2) if _overlap(*each)] == []
    assert places == sorted(places, key=lambda each: (each["y"], each["x"]))
    assert {each["gridPos"]["w"] for each in panels if each["type"] == "row"} == {24}


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
    return across and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_dashboard_can_be_imported_with_any_prometheus(uid: str) -> None:
    """Its data source is a variable; its variables are those that it uses."""
    document = DOCUMENTS[uid]
    variables = {each["name"]: each for each in document["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(document["panels"])))

    assert document["schemaVersion"] >= 39
    assert document["uid"] == uid
    assert "id" not in document
    assert variables["datasource"]["type"] == "datasource"
    assert used == variables.keys()
    for panel in _panels(uid):
        sources = [panel, *panel["targets"]] if panel["type"] != "row" else []
        assert all(each["datasource"]["uid"] == "${datasource}" for each in sources)


def test_first_row_is_the_overview() -> None:
    for uid in DASHBOARDS:
        assert _panels(uid)[0]["title"] == "Overview"


def test_every_panel_has_a_unit_and_its_own_legends() -> None:
    for uid, panel in PANELS:
        legends = [each["legendFormat"] for each in panel["targets"]]
        refs = [each["refId"] for each in panel["targets"]]

        assert panel["fieldConfig"]["defaults"]["unit"], (uid, panel["title"])
        assert len(legends) == len({*legends}), panel["title"]
        assert len(refs) == len({*refs}), panel["title"]


def test_every_alert_has_a_panel_with_its_runbook() -> None:
    """And its threshold, where the panel shows the same value."""
    linked = {
        (each["title"].removeprefix("Runbook of "), each["url"]): panel
        for _, panel in PANELS
        for each in panel["links"]
    }
    names = {name for name, _ in linked}
    ours = definitions(load(environ={}).alerts.thresholds)
    files = [*(REPOSITORY / "deploy/prometheus").glob("*.rules.yaml")]
    rules = [
        rule
        for file in files
        for group in yaml.safe_load(file.read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]

    assert names == {rule["alert"] for rule in rules}
    for alert in ours:
        page = alert.runbook.removeprefix("docs/runbooks/")
        panel = linked[alert.name, f"${{runbooks:raw}}/{page}"]
        steps = [each["value"] for each in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
        is_marked = alert.name not in {"StoreUnreachable", "ErrorMixChanged"}
        assert (alert.threshold in steps) is is_marked, alert.name


# --- with compose ---------------------------------------------------------------------------


def test_prometheus_of_compose_has_the_rules_and_asks_the_services() -> None:
    """Promtool reads its settings and the files that they name."""
    file = REPOSITORY / "deploy/prometheus/prometheus.yaml"
    settings = yaml.safe_load(file.read_text("utf-8"))
    asked = [each for job in settings["scrape_configs"] for each in job["dns_sd_configs"]]

    assert "SUCCESS" in check_config(file)
    assert settings["rule_files"] == sorted(each.name for each in file.parent.glob("*.rules.yaml"))
    assert {name for each in asked for name in each["names"]} <= SERVICES.keys()
    ports = load(environ={}).metrics.port, load(environ={}).tickets.metrics_port
    assert tuple(each["port"] for each in asked) == ports
    assert SERVICES["api"]["environment"]["CARTEIRO_METRICS_HOST"] == "0.0.0.0"


def test_grafana_of_compose_finds_dashboards_and_prometheus() -> None:
    """In the folders that are mounted."""
    [provider] = yaml.safe_load((GRAFANA / "provisioning/dashboards/carteiro.yaml").read_text())[
        "providers"
    ]
    [source] = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    mounts = dict(
        each.split(":")[:2] for each in SERVICES["grafana"]["volumes"] if each.startswith("./")
    )

    assert mounts["./grafana"] == provider["options"]["path"]
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    assert source["url"] == "http://prometheus:9090"
    assert {each.stem for each in GRAFANA.glob("*.json")} == set(DASHBOARDS)
