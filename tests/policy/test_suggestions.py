"""Rules that history suggests: where it contradicts a verdict, with evidence of more than one tenant."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from carteiro.model import Category, FailureGroup, GroupHistory, GroupState, History, Scope
from carteiro.policy.own_rules import overruled
from carteiro.policy.stage import Stage
from carteiro.policy.suggestions import suggestion_of
from support.builders import a_failure

_NOW = datetime(2027, 1, 1, tzinfo=UTC)
REASON = "451 4.7.1 <ana@example.com>: Your message (id 77) was deferred. Try again later"
GROUP = FailureGroup(
    id="0123456789ab",
    provider="smtp",
    rule="smtp.text.deferred@rcpt",
    error="",
    reason="… Your message … was deferred. Try again later",
    code="451",
    category=Category.TRANSIENT_ERROR,
    scope=Scope.RECIPIENT,
    state=GroupState.OPEN,
    first_seen=_NOW,
    opened_at=_NOW,
    last_seen=_NOW,
    resolved_at=None,
    attempts=100,
    deaths=50,
)


def _vain(lost: int, sent: int = 0) -> History:
    return History({1: Counter({"lost": lost, "failed.2": lost, "sent.2": sent})})


def _revived(sent: int, lost: int = 0) -> History:
    return History({1: Counter({"redriven.sent": sent, "redriven.lost": lost})})


def _found(whole: History, others: History | None = None, **changes: Any) -> GroupHistory:
    tenants = 1 if others is None else 2
    return GroupHistory(replace(GROUP, **changes), whole, others or History(), tenants)


def test_vain_retries_suggest_a_permanent_failure() -> None:
    """A rule for just these answers, that every store and the settings take."""
    found = suggestion_of(_found(_vain(200), _vain(60)), is_only_tenant=False)

    assert found is not None
    assert (found.count, found.sent, found.others, found.were_redriven) == (200, 0, 60, False)
    rule = found.rule
    assert (rule.name, rule.provider, rule.stage) == ("history-0123456789ab", "smtp", Stage.RCPT)
    assert (rule.code, rule.category, rule.retryable) == ("451", Category.PERMANENT_ERROR, False)
    failure = a_failure("451", reason=REASON, rule=GROUP.rule, scope=Scope.RECIPIENT)
    judged = overruled(failure, [rule], provider="smtp")
    assert (judged.rule, judged.retryable) == ("own.history-0123456789ab@rcpt", False)


def test_redriven_messages_that_are_sent_suggest_retries() -> None:
    """Of a failure that is final until now."""
    found = suggestion_of(_found(_revived(90, 10), _revived(60, 5)), is_only_tenant=False)

    assert found is not None
    assert (found.count, found.sent, found.were_redriven) == (100, 90, True)
    assert (found.rule.retryable, found.rule.category) == (True, Category.TRANSIENT_ERROR)


@pytest.mark.parametrize(
    ("found", "is_only_tenant"),
    [
        (_found(_vain(49)), True),
        (_found(_vain(10_000)), False),
        (_found(_vain(10_000), _vain(49)), False),
        (_found(_vain(100, sent=8), _vain(60, sent=4)), False),
        (_found(_revived(40, 60), _revived(40, 60)), False),
        (_found(_revived(10_000), _revived(3)), False),
        (_found(_vain(100), rule="crashes_worker"), True),
        (_found(_vain(100), rule="task"), True),
    ],
    ids=[
        "too few",
        "one tenant of many",
        "too few of others",
        "some are sent",
        "most are lost again",
        "one tenant redrives",
        "no answer",
        "a task",
    ],
)
def test_nothing_is_suggested(found: GroupHistory, is_only_tenant: bool) -> None:
    """The verdict fits, the evidence is that of one tenant, or no rule can decide on it."""
    assert suggestion_of(found, is_only_tenant=is_only_tenant) is None


def test_only_tenant_is_evidence_enough() -> None:
    """There is nobody else to be wrong about."""
    assert suggestion_of(_found(_vain(50)), is_only_tenant=True) is not None
