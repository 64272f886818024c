"""Notices about alerts and dead letters: the ones that are due, and their repetition. Pure.

Notices follow the state, not the moves: one is due when the state differs from that of the last notice. So a silence
only delays notices about what still holds at its end. An alert that came and went in a silence has none.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from shlex import quote
from typing import Final

from carteiro.model import ZERO, TenantId
from carteiro.model.alerts import (
    ALL_ALERTS,
    DEAD_LETTERS,
    TEST,
    Alert,
    AlertDefinition,
    AlertRules,
    AlertState,
    DeadCount,
    Notice,
    NoticeKind,
    Severity,
    Silence,
)

MOST_COUNTS: Final = 20  # in a notice about dead letters
GIVE_UP_AFTER: Final = timedelta(days=1)
LONGEST_WAIT: Final = timedelta(minutes=10)
_FIRST_WAIT = timedelta(seconds=5)
_FIRES = {AlertState.FIRING, AlertState.ACKNOWLEDGED}


def announced(
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
        if each.state in _FIRES and not is_silenced(each.name, each.subject, silences, now)
    ]


def _due(alert: Alert, rules: AlertRules, now: datetime) -> NoticeKind | None:
    if alert.state is AlertState.RESOLVED:
        return NoticeKind.RESOLVED if alert.told in _FIRES else None
    if alert.state is AlertState.PENDING:
        return None
    if alert.state is not alert.told:
        return NoticeKind(alert.state)
    is_late = alert.told_at is not None and now - alert.told_at >= rules.remind_after > ZERO
    return NoticeKind.REMINDER if is_late and alert.state is AlertState.FIRING else None


def is_silenced(name: str, subject: str, silences: Iterable[Silence], now: datetime) -> bool:
    """True if there are to be no notices about it now."""
    return any(
        each.until > now and each.alert in {name, ALL_ALERTS} and each.subject in {"", subject}
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
        action="" if definition is None else _filled(definition.action, alert),
        runbook="" if definition is None else definition.runbook,
        for_tenant="" if definition is None else _filled(definition.for_tenant, alert),
    )


def _filled(text: str, alert: Alert) -> str:
    """The text with the names that the alert is about, ready for a shell."""
    if not alert.tenant:
        return text
    template = alert.subject.removeprefix(alert.tenant).removeprefix("/")
    names = {"TENANT": quote(alert.tenant), "TEMPLATE": quote(template)}
    return re.sub("|".join(names), lambda found: names[found[0]], text)


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
    """A notice that only shows that a channel works; of one requester the same one for a minute, so that few wait."""
    return Notice(
        id=_id(TEST, by, NoticeKind.TEST, now.replace(second=0, microsecond=0)),
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


# --- repetition


def wait_after(tries: int) -> timedelta:
    """The time until a channel that failed this often is tried again."""
    return min(_FIRST_WAIT * (1 << min(tries, 10)), LONGEST_WAIT)


def is_given_up(notice: Notice, now: datetime) -> bool:
    """True if a notice is too old to be of use."""
    return now - notice.at >= GIVE_UP_AFTER
