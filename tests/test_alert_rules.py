"""The alert rules for Prometheus: each is tried at its threshold, and leads to a runbook that there is."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from carteiro.tickets import archive_metrics, metrics
from support.pages import REPOSITORY
from support.promtool import RulesRefused, check_rules, run_rule_tests

FOLDER = REPOSITORY / "deploy/prometheus"
RULES, UNIT_TESTS = FOLDER / "tickets.rules.yaml", FOLDER / "tickets.rules.test.yaml"
GROUPS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in GROUPS for rule in group["rules"]
}
# As those who know the lane by its first names expect them: how bad, from where on, of what or over how long.
EXPECTED = {
    "FlowCDLQMessagesAccumulating": ("critical", "> 10", "carteiro_tickets_in_archive"),
    "FlowCHighDLQRate": ("warning", "> 0.1", "[5m]"),
    "FlowCDLQPublishFailures": ("critical", "> 0", "[5m]"),
}
_METRIC = re.compile(r"\b(?:carteiro|worker_agent)_\w+")


def test_prometheus_takes_the_rules() -> None:
    """All of them."""
    assert f"{len(ALERTS)} rules found" in check_rules(RULES)


def test_the_rules_do_what_their_tests_say() -> None:
    """Promtool plays the figures, and looks at which alerts come."""
    assert "SUCCESS" in run_rule_tests(UNIT_TESTS)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_well_known_alerts_are_as_they_are_known(name: str) -> None:
    """Whoever routes them by severity finds them."""
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
    ],
)
def test_another_threshold_is_found_out(name: str, threshold: str, tmp_path: Path) -> None:
    """Whoever changes one by accident is told, with the name of the alert."""
    expression = ALERTS[name]["expr"]
    changed = re.sub(r"> [\d.]+$", threshold, expression)
    assert changed != expression
    (tmp_path / RULES.name).write_text(RULES.read_text("utf-8").replace(expression, changed))
    shutil.copy(UNIT_TESTS, tmp_path)

    with pytest.raises(RulesRefused, match=name):
        run_rule_tests(tmp_path / UNIT_TESTS.name)


def test_every_alert_is_seen_to_come() -> None:
    """A rule that no test makes fire may never fire."""
    tests = yaml.safe_load(UNIT_TESTS.read_text("utf-8"))["tests"]
    tried = [each for test in tests for each in test["alert_rule_test"]]

    assert {each["alertname"] for each in tried if "exp_alerts" in each} == ALERTS.keys()
    assert {each["alertname"] for each in tried if "exp_alerts" not in each} == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_to_do(name: str) -> None:
    """And its runbook is there."""
    told = ALERTS[name]["annotations"]

    assert told["summary"]
    assert told["action"]
    assert (REPOSITORY / told["runbook"]).is_file()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_about_figures_that_there_are(name: str) -> None:
    """A misspelt metric is no error for Prometheus: its alert just never comes."""
    named = set(_METRIC.findall(ALERTS[name]["expr"]))

    assert named
    assert named <= {each.name for each in (*metrics.ALL, *archive_metrics.OWN)}
