"""The alert rules for Prometheus: each is tested at its threshold, and links to an existing runbook."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from carteiro.observability.metrics.definitions import METRICS
from carteiro.tickets.archive import metrics as archive_metrics
from carteiro.tickets.consume import metrics
from support.pages import REPOSITORY
from support.promtool import RulesRefused, check_rules, run_rule_tests

FOLDER = REPOSITORY / "deploy/prometheus"
FILES = sorted(FOLDER.glob("*.rules.yaml"))
RULES_OF: dict[str, Path] = {
    rule["alert"]: file
    for file in FILES
    for group in yaml.safe_load(file.read_text("utf-8"))["groups"]
    for rule in group["rules"]
}
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for file in FILES
    for group in yaml.safe_load(file.read_text("utf-8"))["groups"]
    for rule in group["rules"]
}
# Alerts under their first, well-known names: severity, threshold, and metric or period.
EXPECTED = {
    "FlowCDLQMessagesAccumulating": ("critical", "> 10", "carteiro_tickets_in_archive"),
    "FlowCHighDLQRate": ("warning", "> 0.1", "[5m]"),
    "FlowCDLQPublishFailures": ("critical", "> 0", "[5m]"),
}
_METRIC = re.compile(r"\b(?:carteiro|worker_agent)_\w+")


def _tests_of(rules: Path) -> Path:
    return rules.with_suffix(".test.yaml")


@pytest.mark.parametrize("rules", FILES, ids=lambda file: file.name)
def test_prometheus_accepts_the_rules(rules: Path) -> None:
    count = sum(file == rules for file in RULES_OF.values())
    assert f"{count} rules found" in check_rules(rules)


@pytest.mark.parametrize("rules", FILES, ids=lambda file: file.name)
def test_rules_pass_their_unit_tests(rules: Path) -> None:
    """Promtool replays the figures, and checks the alerts."""
    assert "SUCCESS" in run_rule_tests(_tests_of(rules))


@pytest.mark.parametrize("name", EXPECTED)
def test_well_known_alerts_keep_their_names_and_severities(name: str) -> None:
    """Routing by severity still finds them."""
    severity, threshold, window = EXPECTED[name]

    assert ALERTS[name]["labels"] == {"severity": severity}
    assert ALERTS[name]["expr"].endswith(threshold)
    assert window in ALERTS[name]["expr"]


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("FlowCDLQMessagesAccumulating", "> 9"),
        ("FlowCDLQMessagesAccumulating", "> 11"),
        ("FlowCHighDLQRate", "> 0.099"),
        ("FlowCHighDLQRate", "> 0.104"),
        ("FlowCDLQPublishFailures", "> -1"),
        ("FlowCDLQPublishFailures", "> 0.004"),
        ("TicketArchiveLags", "> 999"),
        ("TicketArchiveLags", "> 1001"),
        ("QueueMemoryHigh", "> 0.79"),
        ("QueueMemoryHigh", "> 0.82"),
        ("QueueMemoryCritical", "> 0.89"),
        ("QueueMemoryCritical", "> 0.92"),
        ("SchedulerSilent", "> 599"),
        ("SchedulerSilent", "> 601"),
    ],
)
def test_changed_threshold_is_detected(name: str, threshold: str, tmp_path: Path) -> None:
    """An accidental change fails with the name of the alert."""
    expression = ALERTS[name]["expr"]
    changed = re.sub(r"> [\d.]+$", threshold, expression)
    assert changed != expression
    rules = RULES_OF[name]
    (tmp_path / rules.name).write_text(rules.read_text("utf-8").replace(expression, changed))
    shutil.copy(_tests_of(rules), tmp_path)

    with pytest.raises(RulesRefused, match=name):
        run_rule_tests(tmp_path / _tests_of(rules).name)


def test_every_alert_fires_in_a_test() -> None:
    """A rule that no test makes fire may never fire."""
    tests = [
        each
        for file in FILES
        for each in yaml.safe_load(_tests_of(file).read_text("utf-8"))["tests"]
    ]
    tried = [each for test in tests for each in test["alert_rule_test"]]

    assert {each["alertname"] for each in tried if "exp_alerts" in each} == ALERTS.keys()
    assert {each["alertname"] for each in tried if "exp_alerts" not in each} == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_alert_says_what_to_do(name: str) -> None:
    """And its runbook exists."""
    told = ALERTS[name]["annotations"]

    assert told["summary"]
    assert told["action"]
    assert (REPOSITORY / told["runbook"]).is_file()


@pytest.mark.parametrize("name", ALERTS)
def test_alert_uses_existing_metrics(name: str) -> None:
    """Prometheus accepts a misspelt metric, and its alert never fires."""
    named = set(_METRIC.findall(ALERTS[name]["expr"]))

    assert named
    assert named <= {*METRICS, *(each.full_name for each in (*metrics.ALL, *archive_metrics.OWN))}
