"""Redrives and their messages.

Every change first takes the version that it is for: the row stays locked until the transaction ends, so a page of
messages, the items that record it and the course are stored together, and never after a pause or a cancel.
"""

import builtins
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import orjson
from uuid_utils import uuid7

from carteiro import model
from carteiro.model import Course, Ramp, Redrive, RedriveAnswer, RedriveResult, RedriveState
from carteiro.policy.audit import harmless
from carteiro.policy.ramp import resumed
from carteiro.stores.columns import made, moment
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.door import lock
from carteiro.stores.sql.ledger import Entries
from carteiro.stores.sql.redrive import redrive as redrive_messages
from carteiro.stores.sql.session import Database, Session, Wake

_KEPT = 100  # ended redrives of a tenant
_ACTIONS = {
    RedriveState.RUNNING: "resume",
    RedriveState.PAUSED: "pause",
    RedriveState.STOPPED: "stop",
    RedriveState.CANCELLED: "cancel",
    RedriveState.FINISHED: "finish",
}
_OPEN = frozenset(RedriveState) - model.ENDED_REDRIVES
_BEFORE = {
    RedriveState.RUNNING: {RedriveState.PAUSED, RedriveState.STOPPED},
    RedriveState.PAUSED: {RedriveState.RUNNING},
    RedriveState.STOPPED: {RedriveState.RUNNING},
    RedriveState.CANCELLED: _OPEN,
    RedriveState.FINISHED: {RedriveState.RUNNING},
}
_ERASED = "Its text has the address of a recipient that was erased."
_DAY_MS = 86_400_000
_ABANDONED_MS, _ABANDONED_OF_TENANT_MS = 30 * _DAY_MS, _DAY_MS
_RESULTS = {
    model.State.SENT: RedriveResult.SENT,
    model.State.FAILED: RedriveResult.FAILED,
    model.State.EXPIRED: RedriveResult.FAILED,
    model.State.CANCELLED: RedriveResult.CANCELLED,
    None: RedriveResult.CANCELLED,
}


class SqlRedrives:
    """See `carteiro.ports.redrives.Redrives` for what it promises."""

    def __init__(self, db: Database, wake: Wake, entries: Entries, *, has_queue: bool) -> None:
        self._db = db
        self._wake = wake
        self._entries = entries
        self._has_queue = has_queue

    async def start(
        self, wanted: model.DeadFilter, *, by: str, ramp: Ramp, total: int
    ) -> Redrive | model.TooManyRedrives:
        """Start a redrive of the dead letters that match now; ``by`` is recorded as the requester."""
        now = await self._db.now()
        new = new_redrive(wanted, now, by=by, ramp=ramp, total=total)
        return await self._db.write(lambda session: _start(session, new, now))

    async def list(
        self,
        *,
        tenant: model.TenantId | None = None,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[Redrive]:
        """Redrives of all tenants or of one, newest first."""
        at, place = key_of(cursor, (FAR, ""))
        statement = "redrives_list" if tenant is None else "redrives_list_of_tenant"
        whose = {} if tenant is None else {"tenant": tenant}
        rows = await self._db.fetch(statement, **whose, at=at, id=place, limit=limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return model.Page(
            [_redrive_of(row) for row in rows[:limit]],
            last and cursor_at(last[_STARTED_AT], last[0]),
        )

    async def show(
        self, redrive: model.RedriveId, *, tenant: model.TenantId | None = None
    ) -> Redrive | None:
        """One redrive; with a ``tenant``, only that tenant's is found."""
        row = await self._db.first("redrives_show", id=redrive)
        found = None if row is None else _redrive_of(row)
        return found if found is not None and tenant in {None, found.tenant} else None

    async def set(
        self,
        redrive: model.RedriveId,
        state: RedriveState,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> Redrive | None:
        """Pause, resume, cancel, stop or finish it, and return it; None if there is none, or of another version."""
        now = await self._db.now()

        async def change(session: Session) -> Redrive | None:
            row = await session.first("redrives_take", id=redrive)
            before = None if row is None else _redrive_of(row)
            if before is None or version not in {None, before.version}:
                return None
            if not _may_become(before, state):
                return before
            return await _set(session, before, state, reason, now)

        return await self._db.write(change)

    # --- for upkeep ---------------------------------------------------------------------------

    async def due(self) -> builtins.list[Redrive]:
        """Those that run, ended ones with messages to forget, and those that nobody resumed in time."""
        now = await self._db.now()
        times = {
            "abandoned": now - _ABANDONED_MS,
            "abandoned_of_tenant": now - _ABANDONED_OF_TENANT_MS,
        }
        rows = await self._db.fetch("redrives_due", **times)
        return [_redrive_of(row) for row in rows]

    async def watched(
        self, redrive: Redrive, *, limit: int
    ) -> tuple[int, builtins.list[model.Watched]]:
        """The store's time, and the messages without a result, longest redriven first."""
        rows = await self._db.read(
            lambda session: session.fetch("redrives_watched", id=redrive.id, limit=limit)
        )
        return await self._db.now(), [
            model.Watched(message, run, at, _RESULTS.get(state), provider)
            for message, run, at, state, provider in rows
        ]

    async def judge(
        self,
        redrive: Redrive,
        results: Sequence[tuple[model.MessageId, RedriveResult]],
        course: Course,
    ) -> Redrive | None:
        """Store results, and the course that counts them; None if the redrive has changed."""
        now = await self._db.now()

        async def judge(session: Session) -> Redrive | None:
            changed = await _change(session, replace(redrive, course=course), now)
            if changed is not None:
                await session.run("redrives_judge", id=redrive.id, rows=list(results))
            return changed

        return await self._db.write(judge)

    async def send(
        self, redrive: Redrive, ids: Sequence[model.MessageId], course: Course
    ) -> Redrive | None:
        """Redrive messages that were not in this redrive before, and store the course; None if it has changed."""
        now = await self._db.now()
        sent = await self._db.write(lambda session: self._send(session, redrive, ids, course, now))
        if sent is not None and sent.course.redriven > redrive.course.redriven:
            await self._wake.tell()
        return sent

    async def _send(
        self,
        session: Session,
        redrive: Redrive,
        ids: Sequence[model.MessageId],
        course: Course,
        now: int,
    ) -> Redrive | None:
        if redrive.state is not RedriveState.RUNNING:
            return None
        taken = await _change(session, redrive, now)
        if taken is None:
            return None
        new, held = await _unsent(session, redrive, ids)
        gone = await self._redriven(session, redrive, new, now)
        if gone:
            await session.run("redrives_put", id=redrive.id, ids=gone, run=course.run, now=now)
        if redrive.provider is not None and len(gone) + len(held) < len(ids):
            left = [each for each in ids if each not in {*gone, *held}]
            await session.run("automatic_dismiss", ids=left)  # else the next page has them again
        course = replace(
            course,
            redriven=course.redriven + len(gone),
            skipped=course.skipped + len(ids) - len(gone),
            left_out=course.left_out + len(held),
            step_redriven=course.step_redriven + len(gone),
        )
        return await _change(session, replace(taken, course=course), now)

    async def _redriven(
        self, session: Session, redrive: Redrive, ids: Sequence[model.MessageId], now: int
    ) -> builtins.list[model.MessageId]:
        """Redrive these messages; return those that could be."""
        answers = await redrive_messages(
            session,
            self._entries,
            ids,
            by=redrive.by,
            revision=None,
            now=now,
            has_queue=self._has_queue,
            is_automatic=redrive.provider is not None,
        )
        answered = zip(ids, answers, strict=True)
        return [each for each, answer in answered if answer is RedriveAnswer.REDRIVEN]

    async def forget(self, redrive: Redrive, *, limit: int) -> bool:
        """Delete messages of an ended redrive; True if there may be more."""

        async def forget(session: Session) -> bool:
            if await session.run("redrives_drop", id=redrive.id, limit=limit) == limit:
                return True
            await session.run("redrives_clean", id=redrive.id)
            await session.run("redrives_forget", tenant=redrive.tenant or "", most=_KEPT)
            await session.run("redrives_forget_unknown", most=_KEPT)
            return False

        return await self._db.write(forget)


async def _start(session: Session, new: Redrive, now: int) -> Redrive | model.TooManyRedrives:
    await lock(session, ["redrives"])
    counts = dict(await session.fetch("redrives_open"))
    if counts.get(new.tenant or "", 0) >= model.MOST_OPEN_REDRIVES_OF_TENANT:
        return model.TooManyRedrives(model.MOST_OPEN_REDRIVES_OF_TENANT, of_tenant=True)
    of_tenants = sum(counts.values()) - counts.get("", 0)
    if new.tenant is not None and of_tenants >= model.MOST_OPEN_REDRIVES:
        return model.TooManyRedrives(model.MOST_OPEN_REDRIVES, of_tenant=False)
    return await add_redrive(session, new, now)


def new_redrive(  # noqa: PLR0913 - its fields
    wanted: model.DeadFilter,
    now: int,
    *,
    by: str,
    ramp: Ramp,
    total: int,
    provider: str | None = None,
) -> Redrive:
    """A redrive of the dead letters that match and were there before now."""
    end = min(wanted.moved_before or moment(now), moment(now))
    wanted = replace(wanted, moved_before=end, is_redriven=False)
    named = model.RedriveId(str(uuid7())), wanted.tenant, wanted, by, RedriveState.RUNNING, None
    times = moment(now), moment(now)
    return Redrive(*named, ramp, Course(step_at=now), total, *times, version=1, provider=provider)


async def add_redrive(session: Session, new: Redrive, now: int) -> Redrive:
    """Store a redrive that starts, and its audit row."""
    await session.run(
        "redrives_add",
        id=new.id,
        tenant=new.tenant or "",
        by=new.by,
        ramp=_text(asdict(new.ramp)),
        total=new.total,
        now=now,
        provider=new.provider,
        **_changing(new),
    )
    wanted = {name: each for name, each in asdict(new.wanted).items() if each is not None}
    if "text" in wanted:
        wanted["text"] = True  # it may be an address
    said = {"wanted": wanted, "total": new.total, **asdict(new.ramp)}
    if new.provider is not None:
        said["provider"] = new.provider
    await note(session, now, Noted("start", "redrive", new.id, new.tenant, after=said))
    return new


def _may_become(before: Redrive, state: RedriveState) -> bool:
    if before.provider is not None and state is RedriveState.FINISHED:
        return (
            before.state not in model.ENDED_REDRIVES
        )  # also one that has stopped: nobody waits to resume it
    return before.state in _BEFORE[state]


async def _set(
    session: Session, before: Redrive, state: RedriveState, reason: str | None, now: int
) -> Redrive | None:
    wanted, course = before.wanted, before.course
    if state is RedriveState.RUNNING:
        course = resumed(course, now)
    if state in model.ENDED_REDRIVES:
        wanted = _without_addresses(wanted)
    after = replace(before, state=state, reason=reason, wanted=wanted, course=course)
    counts = {"redriven": course.redriven, "sent": course.sent, "failed": course.failed}
    noted = Noted(
        *(_ACTIONS[state], "redrive", before.id, before.tenant),
        before={"state": before.state.value},
        after={"state": state.value, "reason": reason, **counts},
        round=before.version,  # two stops of a day may say the same
    )
    await note(session, now, noted)
    return await _change(session, after, now)


def _without_addresses(wanted: model.DeadFilter) -> model.DeadFilter:
    """The filter of an ended redrive, which is only shown."""
    named = {"code": wanted.code, "kind": wanted.kind, "group": wanted.group}
    shown = {name: harmless(each) for name, each in named.items() if each is not None}
    return replace(wanted, text=wanted.text and "", **shown)  # type: ignore[arg-type]


async def cancel_redrives(session: Session, recipient: model.Recipient, now: int) -> None:
    """Cancel open redrives whose text has the address of a recipient that is erased: the text is deleted then."""
    for row in await session.fetch("redrives_due", abandoned=FAR, abandoned_of_tenant=FAR):
        if _names(_redrive_of(row), recipient):
            taken = await session.first("redrives_take", id=row[0])
            if taken is not None and _names(known := _redrive_of(taken), recipient):
                await _set(session, known, RedriveState.CANCELLED, _ERASED, now)


def _names(redrive: Redrive, recipient: model.Recipient) -> bool:
    text = redrive.wanted.text or ""  # an ended one has none
    is_own = redrive.tenant in {None, recipient.tenant}
    return is_own and recipient.email.casefold() in text.casefold()


async def _unsent(
    session: Session, redrive: Redrive, ids: Sequence[model.MessageId]
) -> tuple[list[model.MessageId], set[model.MessageId]]:
    """Messages that it has not sent yet: those that it may send, and those of held tenants."""
    known = {row[0] for row in await session.fetch("redrives_known", id=redrive.id, ids=list(ids))}
    new = [each for each in ids if each not in known]
    held = {row[0] for row in await session.fetch("redrives_held", ids=new)}
    return [each for each in new if each not in held], held


async def _change(session: Session, after: Redrive, now: int) -> Redrive | None:
    """Store a redrive as the next version; None if it has another version by now."""
    asked = {"id": after.id, "version": after.version, "state": after.state.value}
    changed = await session.run(
        "redrives_change", **asked, reason=after.reason, now=now, **_changing(after)
    )
    return replace(after, version=after.version + 1, changed_at=moment(now)) if changed else None


def _changing(redrive: Redrive) -> dict[str, str]:
    return {"wanted": _text(asdict(redrive.wanted)), "course": _text(asdict(redrive.course))}


# --- columns ----------------------------------------------------------------------------------

_STARTED_AT = 9


def _redrive_of(row: Sequence[Any]) -> Redrive:
    identity, tenant, wanted, by, state, reason, ramp, course, *rest = row
    values = Ramp(**orjson.loads(ramp)), Course(**orjson.loads(course))
    told = [identity, tenant or None, _filter_of(wanted), by, state, reason, *values, *rest]
    return made(Redrive, told)


def _filter_of(text: str) -> model.DeadFilter:
    stored = orjson.loads(text)
    for name in ("moved_after", "moved_before"):
        stored[name] = stored[name] and datetime.fromisoformat(stored[name])
    for name, kind in (("reason", model.DeadReason), ("category", model.Category)):
        stored[name] = stored[name] and kind(stored[name])
    return model.DeadFilter(**stored)


def _text(fields: dict[str, Any]) -> str:
    return orjson.dumps(fields).decode()
