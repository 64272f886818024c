"""Prometheus' own tool reads the alert rules and runs their unit tests."""

from pathlib import Path

import pytest

from support.promtool import RulesRefused, check_rules, run_rule_tests

RULES = """
groups:
  - name: tickets
    rules:
      - alert: TicketsDie
        expr: increase(dead_tickets_total[5m]) > 0
        labels: {severity: page}
"""

UNIT_TEST = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: dead_tickets_total, values: "0 0 {then} {then}"}}
    alert_rule_test:
      - eval_time: 3m
        alertname: TicketsDie
        exp_alerts:
          - exp_labels: {{severity: page}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with rules."""
    (tmp_path / "rules.yml").write_text(RULES, "utf-8")
    return tmp_path


def unit_test(folder: Path, *, then: int) -> Path:
    """A test that expects the alert at this number of dead tickets."""
    written = folder / "test.yml"
    written.write_text(UNIT_TEST.format(then=then), "utf-8")
    return written


def test_valid_rules_pass(folder: Path) -> None:
    """It counts them."""
    assert "1 rules found" in check_rules(folder / "rules.yml")


def test_invalid_rules_are_refused(folder: Path) -> None:
    """With the reason."""
    (folder / "rules.yml").write_text(RULES.replace("[5m]", "[5 minutes]"), "utf-8")

    with pytest.raises(RulesRefused, match="could not parse expression"):
        check_rules(folder / "rules.yml")


def test_rules_that_meet_their_test_pass(folder: Path) -> None:
    """The alert fires when a ticket dies."""
    assert "SUCCESS" in run_rule_tests(unit_test(folder, then=1))


def test_rules_that_miss_their_test_fail(folder: Path) -> None:
    """The alert does not fire without a dead ticket."""
    with pytest.raises(RulesRefused, match="TicketsDie"):
        run_rule_tests(unit_test(folder, then=0))
