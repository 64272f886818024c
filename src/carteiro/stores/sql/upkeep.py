"""Slow work in small pages, a short transaction each."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from carteiro.model import MessageId, Via
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.quota import KEY_LIFE_MS
from carteiro.ports.upkeep import Kept, Pruned
from carteiro.runtime.acting import actor
from carteiro.stores.columns import maybe_moment
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.erasing import Messages, forget_messages
from carteiro.stores.sql.ledger import Entries, expiries
from carteiro.stores.sql.paired_ledger import overdue
from carteiro.stores.sql.session import Database, Session, Wake

_LOCKS = 10_000  # a page


class SqlUpkeep:
    """Expiry, pruning and leads; a store adds backup and compaction."""

    def __init__(self, db: Database, entries: Entries, wake: Wake) -> None:
        self._db = db
        self._entries = entries
        self._wake = wake

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages past their time to live; return the number."""
        after, expired = None, 0
        while expired < limit:
            page, after = await overdue(self._db, after=after, limit=limit)
            if not page:
                break
            answers, has_work = await self._entries.write(expiries(page[: limit - expired]))
            expired += answers.count(True)
            if has_work:
                await self._wake.tell()
            if after is None:
                break
        return expired

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        kept: Kept = Kept(),  # noqa: B008 - a value, never changed
        after: MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Check the next ``limit`` messages and delete data older than its retention (None keeps it)."""
        now = await self._db.now()
        keys = await self._db.run("prune_keys", before=now - KEY_LIFE_MS, limit=limit)
        locks = await self._db.run("prune_locks", limit=_LOCKS)
        await self._db.run("prune_counts", now=now)
        await self._db.run("prune_suppressions", now=now, limit=limit)
        rows = 0 if kept.audit is None else await self._prune_audit(now, kept.audit, limit)
        alerts = await self._db.run("alerts_prune", before=_before(now, kept.alerts), limit=limit)
        mails = 0 if kept.inbox is None else await self._prune_inbox(now, kept.inbox, limit)
        others = keys, rows, alerts, mails
        has_more = limit in others or locks == _LOCKS
        until = _before(now, bodies), _before(now, histories)
        if bodies is None and histories is None:
            return Pruned(0, 0, None, *others, has_more)
        retention = {"bodies_ms": _ms(bodies), "history_ms": _ms(histories)}
        noted = Noted("prune", "messages", "", after=retention, is_daily=True)

        async def drop(session: Session) -> tuple[int, int, MessageId | None]:
            bodies, histories, end = await _drop_page(session, after or "", limit, until)
            if bodies or histories:
                await note(session, now, noted)
            return bodies, histories, end

        dropped, forgotten, end = await self._db.write(drop)
        return Pruned(dropped, forgotten, end, *others, has_more)

    async def _prune_audit(self, now: int, retention: timedelta, limit: int) -> int:
        """Delete audit rows, and say so in a new one; of upkeep once a day, so without the number."""
        kept = retention // MILLISECOND

        async def drop(session: Session) -> int:
            rows = await session.run("prune_audit", before=now - kept, limit=limit)
            if rows:
                counted = {} if actor().via is Via.UPKEEP else {"count": rows}
                await note(
                    session, now, Noted("prune", "audit", "", after={"audit_ms": kept} | counted)
                )
            return rows

        return await self._db.write(drop)

    async def _prune_inbox(self, now: int, retention: timedelta, limit: int) -> int:
        """Delete mails that the sandbox delivered; recorded once a day."""
        kept = retention // MILLISECOND

        async def drop(session: Session) -> int:
            mails = await session.run("inbox_prune", before=now - kept, limit=limit)
            if mails:
                noted = Noted("prune", "inbox", "", after={"inbox_ms": kept}, is_daily=True)
                await note(session, now, noted)
            return mails

        return await self._db.write(drop)

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another holder has it."""
        now = await self._db.now()
        until = now + term // MILLISECOND
        return await self._db.run("lead", name=name, holder=holder, now=now, until=until) > 0

    async def last_seen(self) -> datetime | None:
        """Time at which a worker or a cron run last took or renewed a lead; None: never."""
        return maybe_moment(await self._db.value("last_seen"))


def _ms(retention: timedelta | None) -> int | None:
    return None if retention is None else retention // MILLISECOND


def _before(now: int, retention: timedelta | None) -> int | None:
    return None if retention is None else now - retention // MILLISECOND


async def _drop_page(
    session: Session, after: str, limit: int, until: tuple[int | None, int | None]
) -> tuple[int, int, MessageId | None]:
    """Delete what is past its retention; return the numbers of bodies and histories, and the start of the next page."""
    await session.fetch("by_index")
    bodies_until, histories_until = until
    page: Sequence[Any] = await session.fetch(
        "prune_find",
        after=after,
        limit=limit,
        bodies_before=bodies_until,
        histories_before=histories_until,
    )
    histories = await _held(session, [row[1] for row in page if row[3]], histories_until)
    bodies = await _held(session, [row[1] for row in page if row[2] and not row[3]], bodies_until)
    if histories.numbers:
        await forget_messages(session, histories)
    dropped = 0
    if bodies.numbers:
        dropped = await session.run("prune_contents", **bodies._asdict())
    return dropped, len(histories.ids), page[-1][0] if len(page) == limit else None


async def _held(session: Session, numbers: Sequence[int], until: int | None) -> Messages:
    """The messages that can be deleted: locked first, then those that a dead letter keeps are left out.

    Redriving and restoring a dead letter lock the entry, too, so they come before or after this.
    """
    if not numbers:
        return Messages([], [])
    held = [row[0] for row in await session.fetch("prune_hold", numbers=numbers, until=until)]
    free = await session.fetch("prune_free", numbers=held)
    return Messages([row[0] for row in free], [row[1] for row in free])
