"""Advice on failures: there is one for every group, with a page that exists."""

from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from carteiro.model import Category, FailureGroup, GroupState, Scope
from carteiro.policy.advice import Advice, advice_on

HOME = Path(__file__).parents[2]
NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)


def _advice(category: Category, scope: Scope, rule: str = "smtp.code.550") -> Advice:
    said = ("0123456789ab", "smtp", rule, "", "", "550", category, scope)
    return advice_on(FailureGroup(*said, GroupState.OPEN, NOON, NOON, NOON, None, 1, 0))


def test_every_failure_has_advice() -> None:
    """A sentence, and a runbook."""
    for category, scope in product(Category, Scope):
        advice = _advice(category, scope)
        assert advice.action.endswith(".")
        assert (HOME / advice.runbook).is_file(), advice.runbook


@pytest.mark.parametrize(
    ("rule", "page"),
    [
        ("in_doubt", "duplicates"),
        ("lifecycle.expired", "nothing-is-sent"),
        ("crashes_worker", "dead-letters-grow"),
        ("task", "dead-letters-grow"),
    ],
)
def test_own_failures_have_advice_of_their_own(rule: str, page: str) -> None:
    """Whatever their category."""
    advice = _advice(Category.TRANSIENT_ERROR, Scope.MESSAGE, rule)

    assert advice.runbook == f"docs/runbooks/{page}.md"
    assert (HOME / advice.runbook).is_file()


def test_advice_follows_the_cause() -> None:
    """A redrive helps only if the cause can pass."""
    unknown = _advice(Category.PERMANENT_ERROR, Scope.RECIPIENT)
    slow = _advice(Category.QUOTA_ERROR, Scope.PROVIDER)
    account = _advice(Category.CONFIGURATION_ERROR, Scope.PROVIDER)

    assert "would fail again" in unknown.action
    assert "slower" in slow.action
    assert "account" in account.action
