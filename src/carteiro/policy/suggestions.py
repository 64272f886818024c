"""Rules that history suggests: where what became of messages contradicts their verdict.

A rule is about the mail of all tenants, so the evidence must hold without the tenant that has most of it, unless the
installation has only one. An operator reads a suggestion before it becomes a rule.
"""

import re
from typing import Final

from carteiro.model import Category, FailureGroup, GroupHistory, History, value
from carteiro.policy.history import by_attempt, messages, redriven, span
from carteiro.policy.own_rules import OwnRule, bounded_pattern
from carteiro.policy.stage import Stage
from carteiro.policy.wilson import Bounds, bounds

LEAST: Final = 50  # messages
_NEVER: Final = 0.1  # at the upper bound
_OFTEN: Final = 0.5  # at the lower bound
_HIDDEN = "…"
_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")
# Rules, up to their first dot, that no answer of a provider leads to: own rules decide nothing there.
_WITHOUT_ANSWER: Final = frozenset(
    {"crashes_worker", "in_doubt", "lifecycle", "other", "settle", "sql", "task", "validation"}
)


@value
class Suggestion:
    """A rule, and its evidence: of ``count`` messages, of ``tenants`` tenants and ``days`` days, ``sent`` were sent.

    ``were_redriven``: the messages had been given up. Without the largest tenant ``others`` of them are left.
    """

    rule: OwnRule
    group: FailureGroup
    days: int
    were_redriven: bool
    count: int
    sent: int
    share: Bounds
    tenants: int
    others: int


def suggestion_of(found: GroupHistory, *, is_only_tenant: bool) -> Suggestion | None:
    """The rule that the history of a group suggests; None: it agrees with the verdict, or says too little."""
    rule = _rule_of(found.group, is_retried=bool(by_attempt(found.whole)))
    if rule is None:
        return None
    parts = [found.whole] if is_only_tenant else [found.whole, found.without_largest]
    if not all(_contradicts(each, rule) for each in parts):
        return None
    count, sent = _cases(found.whole, rule)
    others = _cases(found.without_largest, rule)[0]
    share = bounds(sent, count)
    return Suggestion(
        rule=rule,
        group=found.group,
        days=span(found.whole),
        were_redriven=rule.retryable,
        count=count,
        sent=sent,
        share=share,
        tenants=found.tenants,
        others=others,
    )


def _cases(history: History, rule: OwnRule) -> tuple[int, int]:
    return redriven(history) if rule.retryable else messages(history)


def _contradicts(history: History, rule: OwnRule) -> bool:
    count, sent = _cases(history, rule)
    share = bounds(sent, count)
    return count >= LEAST and (share.low > _OFTEN if rule.retryable else share.high < _NEVER)


def _rule_of(group: FailureGroup, *, is_retried: bool) -> OwnRule | None:
    """A rule for the failures of a group, with the opposite verdict; None: no rule decides on them."""
    provider = group.provider.partition(":")[0]
    name, _, stage = group.rule.partition("@")
    if name.partition(".")[0] in _WITHOUT_ANSWER:
        return None
    text = max((part.strip() for part in group.reason.split(_HIDDEN)), key=len)
    return OwnRule(
        name=f"history-{group.id}",
        category=Category.PERMANENT_ERROR if is_retried else Category.TRANSIENT_ERROR,
        retryable=not is_retried,
        scope=group.scope,
        provider=provider,
        stage=Stage(stage) if stage else None,
        code=group.code,
        text=bounded_pattern(_SPECIAL.sub(r"\\\g<0>", text)) if text else None,
    )
