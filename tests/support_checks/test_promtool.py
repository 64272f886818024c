"""Alert rules are read, and their unit tests run, by Prometheus' own tool."""

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
    """A test that expects the alert when the number of dead tickets becomes this one."""
    written = folder / "test.yml"
    written.write_text(UNIT_TEST.format(then=then), "utf-8")
    return written


def test_rules_are_read(folder: Path) -> None:
    """It counts them."""
    assert "1 rules found" in check_rules(folder / "rules.yml")


def test_rules_that_cannot_be_read_are_refused(folder: Path) -> None:
    """With the reason."""
    (folder / "rules.yml").write_text(RULES.replace("[5m]", "[5 minutes]"), "utf-8")

    with pytest.raises(RulesRefused, match="could not parse expression"):
        check_rules(folder / "rules.yml")


def test_rules_that_do_what_their_test_says_pass(folder: Path) -> None:
    """The alert comes when a ticket dies."""
    assert "SUCCESS" in run_rule_tests(unit_test(folder, then=1))


def test_rules_that_do_not_do_what_their_test_says_fail(folder: Path) -> None:
    """It does not come when none does."""
    with pytest.raises(RulesRefused, match="TicketsDie"):
        run_rule_tests(unit_test(folder, then=0))
