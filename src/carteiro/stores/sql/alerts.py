"""Alerts: every change reads and writes under one lock, so that all of them happen one after the other."""

import builtins
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import astuple, fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar

import orjson
from uuid_utils import uuid7

from carteiro.model import MILLISECOND, Cursor, Page, TenantId
from carteiro.model.alerts import (
    ALL_ALERTS,
    DEAD_LETTERS,
    Alert,
    AlertRefusal,
    AlertRules,
    DeadCount,
    DueNotice,
    Finding,
    Notice,
    NoticeKind,
    Severity,
    Silence,
)
from carteiro.policy import alert_states, notices
from carteiro.runtime.acting import actor
from carteiro.stores.columns import in_ms, made, moment
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.door import lock
from carteiro.stores.sql.session import Database, Session

MOST_SILENCES = 100
MOST_RESOLVED = 1000  # and as many silences that ended
KEPT_SILENCES = timedelta(days=30)
# Dead letters that are younger than this are counted the next time: their transaction may not have ended yet.
SETTLED_AFTER = timedelta(minutes=1)
_OVER = timedelta(days=2)  # more than a channel of this installation is tried
_COUNTED = "dead letters counted"  # the mark of the moment up to which they were counted
_LAST_PLACE = chr(0x7F)
_SILENCE = [each.name for each in fields(Silence)]

Result = TypeVar("Result")
_Change: TypeAlias = Callable[[Session, datetime], Coroutine[Any, Any, Result]]


class SqlAlerts:
    """See `carteiro.ports.alerts.Alerts` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def _changed(self, change: _Change[Result]) -> Result:
        """Make a change while nobody else changes alerts."""
        now = moment(await self._db.now())

        async def alone(session: Session) -> Result:
            await lock_alerts(session)
            return await change(session, now)

        return await self._db.write(alone)

    async def move(self, findings: Sequence[Finding], rules: AlertRules) -> builtins.list[Notice]:
        """Move the alerts by what holds now; return the stored notices."""
        has_any = any(each.is_known for each in findings)
        if not has_any and not await self._db.value("alerts_any"):
            return []

        async def move(session: Session, now: datetime) -> builtins.list[Notice]:
            known = [made(Alert, row) for row in await session.fetch("alerts_unsettled")]
            step = alert_states.step(known, findings, await _silences(session, now), rules, now)
            asked = sorted({each.tenant for each in step.alerts} - {""})
            there = {"", *[row[0] for row in await session.fetch("rollup_tenants", ids=asked)]}
            await _store(session, [each for each in step.alerts if each.tenant in there])
            for name, subject in step.gone:
                await session.run("alert_drop", name=name, subject=subject)
            due = [each for each in step.notices if each.tenant in there]
            await _send(session, due)
            await session.run("alerts_trim", most=MOST_RESOLVED)
            await _trim_silences(session, now)
            return due

        return await self._changed(move)

    async def acknowledge(self, name: str, subject: str, rules: AlertRules) -> Alert | AlertRefusal:
        """Acknowledge a firing alert, as the current actor; repeated, it changes nothing."""

        async def acknowledge(session: Session, now: datetime) -> Alert | AlertRefusal:
            row = await session.first("alert_find", name=name, subject=subject)
            if row is None:
                is_known = name in rules.definitions
                return AlertRefusal.NOT_FIRING if is_known else AlertRefusal.UNKNOWN
            before = made(Alert, row)
            after = alert_states.acknowledged(before, actor().who, now)
            if after is None:
                return AlertRefusal.NOT_FIRING
            if after == before:
                return before
            [told], due = notices.announced([after], await _silences(session, now), rules, now)
            await _store(session, [told])
            await _send(session, due)
            states = {"state": before.state}, {"state": told.state}
            await _note(session, now, ("acknowledge", name, subject), told.tenant, *states)
            return told

        return await self._changed(acknowledge)

    async def list(
        self,
        *,
        name: str | None = None,
        tenant: TenantId | None = None,
        resolved: bool = False,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Alert]:
        """The open alerts, or the resolved ones; those that changed last first."""
        at, place = key_of(cursor, (FAR, _LAST_PLACE))
        asked = {"name": name, "tenant": tenant, "resolved": resolved, "limit": limit + 1}
        rows = await self._db.fetch("alerts_list", at=at, place=place, **asked)
        alerts = [made(Alert, row) for row in rows[:limit]]
        if len(rows) <= limit:
            return Page(alerts, None)
        last = alerts[-1]
        return Page(alerts, cursor_at(in_ms(last.changed_at), " ".join(last.key)))

    # --- silences

    async def silence(
        self, alert: str, subject: str, tenant: TenantId, *, lasts: timedelta, reason: str
    ) -> Silence | AlertRefusal:
        """Suppress notices about an alert for a time, as the current actor."""

        async def silence(session: Session, now: datetime) -> Silence | AlertRefusal:
            if alert != ALL_ALERTS and not await _is_there(session, tenant):
                return AlertRefusal.NO_TENANT
            if len(await _silences(session, now)) >= MOST_SILENCES:
                return AlertRefusal.TOO_MANY
            by = actor().who
            new = Silence(str(uuid7()), alert, subject, tenant, reason, by, now, now + lasts)
            await _add(session, new)
            await _trim_silences(session, now)
            named, after = ("silence", alert, subject), {"silence": new.id, "until": new.until}
            await _note(session, now, named, tenant, {}, after)
            return new

        return await self._changed(silence)

    async def unsilence(self, silence: str) -> bool:
        """End a silence now; False: there is none with this id."""

        async def unsilence(session: Session, now: datetime) -> bool:
            row = await session.first("silence_drop", id=silence, now=in_ms(now))
            if row is None:
                return False
            ended = made(Silence, row)
            await _add(session, replace(ended, until=now))
            named = "unsilence", ended.alert, ended.subject
            was = {"silence": ended.id, "until": ended.until}
            await _note(session, now, named, ended.tenant, was, {"until": now})
            return True

        return await self._changed(unsilence)

    async def silences(self) -> builtins.list[Silence]:
        """The silences that have not ended, the next to end first."""
        return await _silences(self._db, moment(await self._db.now()))

    async def silenced(
        self, alert: str | None = None, *, tenant: TenantId | None = None, limit: int = 100
    ) -> builtins.list[Silence]:
        """The silences of an alert, or of any, also those that ended; the newest first."""
        since = in_ms(moment(await self._db.now()) - KEPT_SILENCES)
        asked = {"alert": alert, "tenant": tenant, "since": since, "limit": limit}
        return [made(Silence, row) for row in await self._db.fetch("silences_made", **asked)]

    # --- notices

    async def note_dead_letters(self, *, every: timedelta, but: TenantId) -> Notice | None:
        """Store a notice about dead letters since the last one, unless that is younger than ``every``."""
        settled = SETTLED_AFTER // MILLISECOND
        mark, now_ms = await self._db.value("override_get", name=_COUNTED), await self._db.now()
        if _is_early(mark, now_ms - settled, every):
            return None

        async def count(session: Session, now: datetime) -> Notice | None:
            until = in_ms(now) - settled
            stored = await session.value("override_get", name=_COUNTED)
            if _is_early(stored, until, every):
                return None
            since = until if stored is None else min(int(stored), until)
            most = notices.MOST_COUNTS
            asked = {"since": since, "until": until, "but": but, "limit": most}
            rows = await session.fetch("dead_letters_new", **asked)
            silences = await _silences(session, now)
            counts = [DeadCount(*row[:3]) for row in rows]
            notice = notices.dead_letter_notice(
                counts, total=int(rows[0][3]) if rows else 0, since=moment(since), now=now
            )
            if notice and notices.is_silenced(DEAD_LETTERS, "", silences, now):
                notice = None
            await _send(session, [notice] if notice else [])
            await session.run("override_set", name=_COUNTED, setting=str(until))
            return notice

        return await self._changed(count)

    async def test(self) -> Notice:
        """Store a notice for every channel that only shows that the channel works."""

        async def test(session: Session, now: datetime) -> Notice:
            notice = notices.trial_notice(actor().who, now)
            await _send(session, [notice])
            named, after = ("test", notice.alert, ""), {"notice": notice.id}
            await _note(session, now, named, notice.tenant, {}, after)
            return notice

        return await self._changed(test)

    async def spread(self, channels: Collection[str]) -> bool:
        """Give each channel a copy of the new notices; False: no notice is on its way."""
        has_new, has_any = await self._db.first("notices_any")
        if has_new:
            await self._changed(lambda session, _: _spread(session, channels))
        if has_any:
            over = await self._db.now() - _OVER // MILLISECOND
            await self._db.run("notices_prune", before=over)
        return bool(has_any)

    async def due(self, channel: str, *, limit: int) -> builtins.list[DueNotice]:
        """The notices that a channel is to be given now, oldest first."""
        now = await self._db.now()
        latest = now + notices.LONGEST_WAIT // MILLISECOND
        asked = {"channel": channel, "now": now, "latest": latest, "limit": limit}
        return [_due_notice(row) for row in await self._db.fetch("notices_due", **asked)]

    async def waiting(self, *, limit: int = 100) -> builtins.list[DueNotice]:
        """The notices on their way, oldest first; the channel of those that no loop has seen yet is empty."""
        return [_due_notice(row) for row in await self._db.fetch("notices_waiting", limit=limit)]

    async def delivered(self, notice: str, channel: str) -> None:
        """Forget a notice of a channel: it has it, or never will."""
        await self._db.run("notice_drop", id=notice, channel=channel)

    async def put_off(self, notice: str, channel: str, *, wait: timedelta, error: str) -> None:
        """Give the notice to the channel again after a time."""
        due_at = await self._db.now() + wait // MILLISECOND
        await self._db.run("notice_put_off", id=notice, channel=channel, due_at=due_at, error=error)


def _is_early(mark: str | None, until: int, every: timedelta) -> bool:
    """True if the last count ended a short time before this; one that ended later is of a clock that was ahead."""
    return mark is not None and 0 <= until - int(mark) < every // MILLISECOND


async def lock_alerts(session: Session) -> None:
    """Let nobody else change alerts until the transaction ends."""
    await lock(session, ["alerts"])


async def forget_alerts(session: Session, tenant: TenantId) -> None:
    """Delete everything about a tenant, with the lock of alerts; notices about many tenants lose its part."""
    for statement in ("alerts_forget", "silences_forget", "notices_forget"):
        await session.run(statement, tenant=tenant)
    for identity, text in await session.fetch("notices_of_all"):
        notice = _notice_of(text)
        after = notices.without(notice, tenant)
        if after != notice:
            await session.run("notice_rewrite", id=identity, document=_text_of(after))


async def _is_there(session: Session, tenant: TenantId) -> bool:
    return not tenant or bool(await session.fetch("rollup_tenants", ids=[tenant]))


async def _silences(session: Session, now: datetime) -> list[Silence]:
    rows = await session.fetch("silences_live", now=in_ms(now))
    return [made(Silence, row) for row in rows]


async def _add(session: Session, silence: Silence) -> None:
    await session.run("silence_add", **dict(zip(_SILENCE, _row(silence), strict=True)))


async def _trim_silences(session: Session, now: datetime) -> None:
    before = in_ms(now - KEPT_SILENCES)
    await session.run("silences_trim", before=before, now=in_ms(now), most=MOST_RESOLVED)


async def _store(session: Session, alerts: Sequence[Alert]) -> None:
    if alerts:
        await session.run("alerts_put", rows=[_row(each) for each in alerts])


async def _send(session: Session, notices: Iterable[Notice]) -> None:
    """Store notices, for every channel that the next loop has."""
    rows = [
        (each.id, "", each.tenant, in_ms(each.at), in_ms(each.at), 0, "", _text_of(each))
        for each in notices
    ]
    if rows:
        await session.run("notices_put", rows=rows)


async def _spread(session: Session, channels: Iterable[str]) -> None:
    """Replace new notices by one row for each channel."""
    new = await session.fetch("notices_new")
    rows = [(row[0], channel, *row[2:]) for row in new for channel in channels]
    if rows:
        await session.run("notices_put", rows=rows)


async def _note(  # noqa: PLR0913, PLR0917 - what a row says
    session: Session,
    now: datetime,
    named: tuple[str, str, str],  # action, alert, subject
    tenant: TenantId,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    action, *alert = named
    noted = Noted(action, "alert", " ".join(alert).rstrip(), tenant or None, before, after)
    await note(session, in_ms(now), noted)


def _row(each: Alert | Silence) -> list[object]:
    return [in_ms(part) if isinstance(part, datetime) else part for part in astuple(each)]


def _text_of(notice: Notice) -> str:
    return orjson.dumps(notice).decode()


def _notice_of(text: str) -> Notice:
    stored = orjson.loads(text)
    moments = [datetime.fromisoformat(stored.pop(name)) for name in ("at", "since")]
    counts = tuple(DeadCount(**each) for each in stored.pop("counts"))
    kind, severity = NoticeKind(stored.pop("kind")), Severity(stored.pop("severity"))
    return Notice(
        **stored, at=moments[0], since=moments[1], counts=counts, kind=kind, severity=severity
    )


def _due_notice(row: Sequence[Any]) -> DueNotice:
    document, channel, tries, due_at, error = row
    return DueNotice(_notice_of(document), channel, tries, moment(due_at), error)
