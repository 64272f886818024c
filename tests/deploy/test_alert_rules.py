"""The alert rules for Prometheus: each is tested at its threshold, and links to an existing runbook."""

import re
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from carteiro.config import load
from carteiro.model.alerts import AlertDefinition
from carteiro.observability.metrics.definitions import METRICS
from carteiro.policy.alerts import definitions
from carteiro.tickets.archive import metrics as archive_metrics
from carteiro.tickets.consume import metrics
from carteiro.views.alert_rules import rules
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
OURS = definitions(load(environ={}).alerts.thresholds)
_METRIC = re.compile(r"\b(?:carteiro|worker_agent)_\w+")


def _tests_of(rules: Path) -> list[Path]:
    return sorted(FOLDER.glob(f"{rules.stem}*.test.yaml"))


@pytest.mark.parametrize("rules", FILES, ids=lambda file: file.name)
def test_prometheus_accepts_the_rules(rules: Path) -> None:
    count = sum(file == rules for file in RULES_OF.values())
    assert f"{count} rules found" in check_rules(rules)


@pytest.mark.parametrize("rules", FILES, ids=lambda file: file.name)
def test_rules_pass_their_unit_tests(rules: Path) -> None:
    """Promtool replays the figures, and checks the alerts."""
    assert "SUCCESS" in run_rule_tests(*_tests_of(rules))


@pytest.mark.parametrize("name", EXPECTED)
def test_well_known_alerts_keep_their_names_and_severities(name: str) -> None:
    """Routing by severity still finds them."""
    severity, threshold, window = EXPECTED[name]

    assert ALERTS[name]["labels"] == {"severity": severity}
    assert ALERTS[name]["expr"].endswith(threshold)
    assert window in ALERTS[name]["expr"]


CHANGED = {
    "FlowCDLQMessagesAccumulating": ("> 9", "> 11"),
    "FlowCHighDLQRate": ("> 0.099", "> 0.104"),
    "FlowCDLQPublishFailures": ("> -1", "> 0.004"),
    "TicketArchiveLags": ("> 999", "> 1001"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_threshold_is_detected(name: str, tmp_path: Path) -> None:
    """An accidental change fails with the name of the alert."""
    expression = ALERTS[name]["expr"]
    text = RULES_OF[name].read_text("utf-8")
    changed = [re.sub(r"> [\d.]+$", threshold, expression) for threshold in CHANGED[name]]
    assert expression not in changed

    said = _tested(name, [text.replace(expression, each) for each in changed], tmp_path)

    for each in said:
        assert "FAILED" in each
        assert name in each


@pytest.mark.parametrize("ours", OURS, ids=lambda each: each.name)
def test_changed_rule_of_the_table_is_detected(ours: AlertDefinition, tmp_path: Path) -> None:
    """Its tests are just short of its threshold and just beyond, and of the least number of messages."""
    lower, higher = (ours.threshold * 0.98, ours.threshold * 1.02) if ours.threshold else (-0.5, 1)
    changes: list[dict[str, Any]] = [{"threshold": lower}, {"threshold": higher}]
    changes += [{"given": ""}] if ours.given else []

    as_it_is, *changed = _tested(
        ours.name, [rules([replace(ours, **each)]) for each in ({}, *changes)], tmp_path
    )

    assert "FAILED" not in as_it_is
    for each in changed:
        assert "FAILED" in each
        assert ours.name in each


def _tested(name: str, texts: list[str], folder: Path) -> list[str]:
    """The answers of an alert's unit tests for each of these rules; in one run, as each takes a while to start."""
    files = []
    for number, text in enumerate(texts):
        place = folder / str(number)
        place.mkdir()
        (place / RULES_OF[name].name).write_text(text)
        files.append(_tests_about(name, place))
    try:
        said = run_rule_tests(*chain(*files))
    except RulesRefused as refused:
        said = str(refused)
    about = said.split("Unit Testing:")[1:]
    assert len(about) == sum(map(len, files))
    return ["".join(islice(about, len(each))) for about in [iter(about)] for each in files]


def _tests_about(name: str, folder: Path) -> list[Path]:
    """The unit tests of one alert: a run of all takes seconds."""
    files = []
    for each in _tests_of(RULES_OF[name]):
        tests = yaml.safe_load(each.read_text("utf-8"))
        for test in tests["tests"]:
            about = [one for one in test["alert_rule_test"] if one["alertname"] == name]
            test["alert_rule_test"] = about
        tests["tests"] = [test for test in tests["tests"] if test["alert_rule_test"]]
        if tests["tests"]:
            files.append(folder / each.name)
            files[-1].write_text(yaml.safe_dump(tests))
    return files


def test_every_alert_fires_in_a_test() -> None:
    """A rule that no test makes fire may never fire."""
    tests = [
        each
        for file in FILES
        for tests in _tests_of(file)
        for each in yaml.safe_load(tests.read_text("utf-8"))["tests"]
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
    assert (REPOSITORY / told["runbook"].partition("#")[0]).is_file()


@pytest.mark.parametrize("name", ALERTS)
def test_alert_uses_existing_metrics(name: str) -> None:
    """Prometheus accepts a misspelt metric, and its alert never fires."""
    named = set(_METRIC.findall(ALERTS[name]["expr"]))

    assert named
    assert named <= {*METRICS, *(each.full_name for each in (*metrics.ALL, *archive_metrics.OWN))}
