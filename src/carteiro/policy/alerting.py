"""Alerts move: pending, firing, acknowledged, resolved; and the notices about it. Pure.

Notices follow the state, not the moves: one is due when the state differs from that of the last notice. So a silence
only delays what still holds at its end, and there is none about an alert that came and went in a silence.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from carteiro.model import ZERO, TenantId, value
from carteiro.model.alerts import (
    ALL_ALERTS,
    DEAD_LETTERS,
    TEST,
    About,
    Alert,
    AlertDefinition,
    AlertRules,
    AlertState,
    DeadCount,
    Finding,
    Notice,
    NoticeKind,
    Severity,
    Silence,
)

OTHERS: Final = ""  # the subject of all that are beyond the limit
MOST_COUNTS: Final = 20  # in a notice about dead letters
# After a longer time without a look, a pending condition may have ended in between: its duration begins anew.
LONGEST_GAP: Final = timedelta(minutes=5)
GIVE_UP_AFTER: Final = timedelta(days=1)
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=10)
_TELLABLE = {AlertState.FIRING, AlertState.ACKNOWLEDGED}


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
        after = _moved(before.get(key), found.get(key), rules, now)
        if after is None:
            gone.append(key)
        else:
            moved.append(after)
    told, notices = tell(sorted(moved, key=lambda each: each.key), silences, rules, now)
    changed = [each for each in told if each != before.get(each.key)]
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


def _moved(
    alert: Alert | None, finding: Finding | None, rules: AlertRules, now: datetime
) -> Alert | None:
    """The alert after a look; None: it is over without a trace."""
    if finding is None:
        return alert and _without(alert, rules, now)
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


# --- telling ----------------------------------------------------------------------------------


def tell(
    alerts: Iterable[Alert], silences: Collection[Silence], rules: AlertRules, now: datetime
) -> tuple[list[Alert], list[Notice]]:
    """The alerts after the notices that are due, and these notices."""
    told, notices = [], []
    for each in alerts:
        kind = _due(each, rules, now)
        if kind is None or is_silenced(each.name, each.subject, silences, now):
            told.append(each)
            continue
        notices.append(_notice(each, kind, rules.definitions.get(each.name), now))
        told.append(replace(each, told=each.state, told_at=now))
    return told, notices


def standing(
    alerts: Iterable[Alert], silences: Collection[Silence], rules: AlertRules, now: datetime
) -> list[Notice]:
    """The alerts that fire now and are not silenced, as their notices."""
    return [
        _notice(each, NoticeKind.FIRING, rules.definitions.get(each.name), now)
        for each in alerts
        if each.state in _TELLABLE and not is_silenced(each.name, each.subject, silences, now)
    ]


def _due(alert: Alert, rules: AlertRules, now: datetime) -> NoticeKind | None:
    if alert.state is AlertState.RESOLVED:
        return NoticeKind.RESOLVED if alert.told in _TELLABLE else None
    if alert.state is AlertState.PENDING:
        return None
    if alert.state is not alert.told:
        return NoticeKind(alert.state)
    is_late = alert.told_at is not None and now - alert.told_at >= rules.remind_after > ZERO
    return NoticeKind.REMINDER if is_late and alert.state is AlertState.FIRING else None


def is_silenced(name: str, subject: str, silences: Iterable[Silence], now: datetime) -> bool:
    """True if there are to be no notices about it now."""
    return any(
        each.until > now and each.alert in {name, ALL_ALERTS} and each.subject in {OTHERS, subject}
        for each in silences
    )


def _notice(
    alert: Alert, kind: NoticeKind, definition: AlertDefinition | None, now: datetime
) -> Notice:
    return Notice(
        id=_id(alert.name, alert.subject, kind, now),
        at=now,
        kind=kind,
        alert=alert.name,
        subject=alert.subject,
        tenant=alert.tenant,
        severity=Severity.WARNING if definition is None else definition.severity,
        value=alert.value,
        threshold=alert.threshold,
        since=alert.since,
        by=alert.acknowledged_by,
        condition="" if definition is None else definition.condition,
        action="" if definition is None else definition.action,
        runbook="" if definition is None else definition.runbook,
    )


def dead_letter_notice(
    counts: Sequence[DeadCount], *, total: int, since: datetime, now: datetime
) -> Notice | None:
    """The notice about new dead letters since a moment; None: there are none. ``counts`` are the largest ones."""
    if not counts:
        return None
    return Notice(
        id=_id(DEAD_LETTERS, "", NoticeKind.DEAD_LETTERS, now),
        at=now,
        kind=NoticeKind.DEAD_LETTERS,
        alert=DEAD_LETTERS,
        subject="",
        tenant=TenantId(""),
        severity=Severity.WARNING,
        value=total,
        threshold=0,
        since=since,
        condition="Messages became dead letters.",
        action="carteiro dead ls lists them; carteiro dead redrive sends them again.",
        runbook="docs/runbooks/dead-letters-grow.md",
        counts=tuple(counts),
    )


def without(notice: Notice, tenant: TenantId) -> Notice:
    """The notice without a tenant that was erased; its sum stays."""
    return replace(notice, counts=tuple(each for each in notice.counts if each.tenant != tenant))


def trial_notice(by: str, now: datetime) -> Notice:
    """A notice that only shows that a channel works."""
    return Notice(
        id=_id(TEST, by, NoticeKind.TEST, now),
        at=now,
        kind=NoticeKind.TEST,
        alert=TEST,
        subject="",
        tenant=TenantId(""),
        severity=Severity.WARNING,
        value=0,
        threshold=0,
        since=now,
        by=by,
        condition="This is a test.",
        action="Nothing is wrong.",
    )


def _id(*said: object) -> str:
    """The same for the same notice, in every process."""
    told = "\0".join(str(_ms(each)) if isinstance(each, datetime) else str(each) for each in said)
    return f"ntc_{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


# --- trying again -----------------------------------------------------------------------------


def wait_after(tries: int) -> timedelta:
    """The time until a channel that failed this often is tried again."""
    return min(_FIRST_WAIT * (1 << min(tries, 10)), _LONGEST_WAIT)


def is_given_up(notice: Notice, now: datetime) -> bool:
    """True if a notice is too old to be of use."""
    return now - notice.at >= GIVE_UP_AFTER
