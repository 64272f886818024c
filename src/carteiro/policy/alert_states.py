"""States of an alert: pending, firing, acknowledged, resolved. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from carteiro.model import TenantId, value
from carteiro.model.alerts import (
    ALL_ALERTS,
    DEAD_LETTERS,
    About,
    Alert,
    AlertDefinition,
    AlertRules,
    AlertState,
    Finding,
    Notice,
    Silence,
)
from carteiro.policy.notices import announced

OTHERS: Final = ""  # the subject of all that are beyond the limit
# After a longer time without a look, a pending condition may have ended in between: its duration begins anew.
LONGEST_GAP: Final = timedelta(minutes=5)


@value
class Step:
    """The alerts to store, those to delete, and the notices to send."""

    alerts: Sequence[Alert]
    gone: Sequence[tuple[str, str]]
    notices: Sequence[Notice]


def step(
    known: Iterable[Alert],
    findings: Iterable[Finding],
    silences: Collection[Silence],
    rules: AlertRules,
    now: datetime,
) -> Step:
    """Move the alerts by what holds now. ``known``: those that are open, or without a notice of their end."""
    before = {each.key: each for each in known}
    found = bounded(findings, before, rules)
    moved, gone = [], []
    for key in before.keys() | found.keys():
        alert = before.get(key)
        after = _moved(alert and _not_later(alert, now), found.get(key), rules, now)
        if after is not None:
            moved.append(after)
        elif alert is not None:
            gone.append(key)
    stored, notices = announced(sorted(moved, key=lambda each: each.key), silences, rules, now)
    changed = [each for each in stored if each != before.get(each.key)]
    return Step(changed, sorted(gone), notices)


def bounded(
    findings: Iterable[Finding], open_: Mapping[tuple[str, str], Alert], rules: AlertRules
) -> dict[tuple[str, str], Finding]:
    """The findings of each name up to the limit; the others are one finding together.

    Tenants take turns, each with its open ones and the worst first: a tenant with many leaves room for others.
    """
    by_name: defaultdict[str, list[Finding]] = defaultdict(list)
    for each in findings:
        if each.alert in rules.definitions:
            by_name[each.alert].append(each)
    kept: dict[tuple[str, str], Finding] = {}
    for name, those in by_name.items():
        those.sort(key=lambda each: ((name, each.subject) not in open_, -each.value, each.subject))
        turns = Counter[TenantId]()
        turn_of: dict[str, int] = {}
        for each in those:
            whose = tenant_of(rules.definitions[name].about, each.subject) or TenantId(each.subject)
            turn_of[each.subject] = turns[whose]
            turns[whose] += 1
        those.sort(key=lambda each: turn_of[each.subject])
        kept |= {(name, each.subject): each for each in those[: rules.most]}
        if len(those) > rules.most:
            kept[name, OTHERS] = Finding(name, OTHERS, len(those) - rules.most, 0)
    return kept


def _not_later(alert: Alert, now: datetime) -> Alert:
    """The alert with moments up to now: a clock that was ahead must not hold it until it is reached again."""
    return replace(
        alert,
        since=min(alert.since, now),
        seen_at=min(alert.seen_at, now),
        changed_at=min(alert.changed_at, now),
        told_at=alert.told_at and min(alert.told_at, now),
    )


def _moved(
    alert: Alert | None, finding: Finding | None, rules: AlertRules, now: datetime
) -> Alert | None:
    """The alert after a look; None: it is over without a trace."""
    if finding is None:
        return alert and _without(alert, rules, now)
    if not finding.is_known:
        return alert and _unknown(alert, now)
    definition = rules.definitions[finding.alert]
    if alert is None or alert.state is AlertState.RESOLVED:
        alert = _begun(finding, definition, now, alert)
    since = alert.since
    if alert.state is AlertState.PENDING:
        since = now if now - alert.seen_at > LONGEST_GAP else since
    seen = replace(
        alert, value=finding.value, threshold=finding.threshold, seen_at=now, since=since
    )
    if seen.state is AlertState.PENDING and now - since >= definition.lasts:
        return replace(seen, state=AlertState.FIRING, changed_at=now)
    return seen


def _unknown(alert: Alert, now: datetime) -> Alert:
    """The alert keeps its state. The time without its condition begins when that is known."""
    is_open = alert.state in {AlertState.FIRING, AlertState.ACKNOWLEDGED}
    return replace(alert, seen_at=now) if is_open else alert


def _without(alert: Alert, rules: AlertRules, now: datetime) -> Alert | None:
    """The alert after a look that did not find its condition."""
    is_pending = alert.state is AlertState.PENDING
    if alert.name not in rules.definitions or (is_pending and alert.told is None):
        return None
    is_recent = not is_pending and now - alert.seen_at < rules.resolve_after
    if alert.state is AlertState.RESOLVED or is_recent:
        return alert
    return replace(alert, state=AlertState.RESOLVED, changed_at=now)


def _begun(
    finding: Finding, definition: AlertDefinition, now: datetime, last: Alert | None
) -> Alert:
    """A new alert; without a notice of the end of the last one, it goes on from there."""
    return Alert(
        name=finding.alert,
        subject=finding.subject,
        tenant=tenant_of(definition.about, finding.subject),
        state=AlertState.PENDING,
        value=finding.value,
        threshold=finding.threshold,
        since=now,
        seen_at=now,
        changed_at=now,
        told=None if last is None else last.told,
        told_at=None if last is None else last.told_at,
    )


def tenant_of(about: About, subject: str) -> TenantId:
    """The tenant that a subject belongs to; empty: none."""
    match about:
        case About.TENANT:
            return TenantId(subject)
        case About.TEMPLATE:
            return TenantId(subject.rpartition("/")[0])
        case _:
            return TenantId("")


def acknowledged(alert: Alert, by: str, now: datetime) -> Alert | None:
    """The alert, acknowledged; None: only a firing one can be."""
    if alert.state is AlertState.ACKNOWLEDGED:
        return alert
    if alert.state is not AlertState.FIRING:
        return None
    return replace(alert, state=AlertState.ACKNOWLEDGED, changed_at=now, acknowledged_by=by)


def silenced_tenant(alert: str, subject: str, rules: AlertRules) -> TenantId | None:
    """The tenant that a silence is about, empty for none; None: there is no such alert."""
    if alert == ALL_ALERTS:
        return TenantId(subject)
    if alert == DEAD_LETTERS:
        return TenantId("")
    known = rules.definitions.get(alert)
    return None if known is None else tenant_of(known.about, subject)
