"""Slow work in small pages on Postgres, a short transaction each."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from carteiro.errors import CannotBackUp
from carteiro.model import MessageId
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.quota import KEY_LIFE_MS
from carteiro.ports.upkeep import Pruned
from carteiro.stores.columns import maybe_moment
from carteiro.stores.postgres import ledger
from carteiro.stores.postgres.database import Database, Session, sql
from carteiro.stores.postgres.erasing import Messages, forget_messages
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.wake import PostgresWake

_LOCKS = 10_000  # a page
_UNHURRIED_S = 24 * 3600.0  # compacting takes as long as there is to write


class PostgresUpkeep:
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(self, db: Database, wake: PostgresWake, options: PostgresOptions) -> None:
        self._db = db
        self._wake = wake
        self._options = options

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages that waited beyond their time; return how many."""
        now, ttl_ms = await self._db.now(), self._options.dead_letter_ttl_ms
        expired, has_work = await ledger.expire(self._db, limit, now, dead_letter_ttl_ms=ttl_ms)
        if has_work:
            await self._wake.tell()
        return expired

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        after: MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Look at the next ``limit`` messages and drop what is older than its retention."""
        now = await self._db.now()
        keys: int = await self._db.value("prune_keys", now - KEY_LIFE_MS, limit)
        locks: int = await self._db.value("prune_locks", _LOCKS)
        await self._db.fetch("prune_counts", now)
        await self._db.fetch("prune_suppressions", now, limit)
        if after is None:
            await self._tend_events(_before(now, histories), now)
        if bodies is None and histories is None:
            return Pruned(0, 0, None, keys, has_more=keys == limit or locks == _LOCKS)
        until = _before(now, bodies), _before(now, histories)
        async with self._db.transaction() as session:
            await session.fetch("by_index")
            page = await session.fetch("prune_find", after or "", limit, *until)
            dropped, forgotten = await _drop_aged(session, page, until)
        end = page[-1][0] if len(page) == limit else None
        if end is None:  # what was kept by these alone
            await self._tend_events(until[1], now)
        return Pruned(dropped, forgotten, end, keys, has_more=keys == limit or locks == _LOCKS)

    async def _tend_events(self, until: int | None, now: int) -> None:
        """Make parts ahead and drop those that are over, each in a transaction of its own."""
        while await self._db.value("tend_events", until, now):
            pass

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:  # noqa: ARG002 - the port's
        """A server is copied by its own tools: they know its roles, its settings and its replicas."""
        text = (
            f"{self._db.name} is a database on a server: back it up with pg_dump --enable-row-security, with pg_dump "
            "as a superuser, or as the server is backed up"
        )
        raise CannotBackUp(text)

    async def compact(self) -> int:
        """Write the tables anew without the room that is free in them; others wait meanwhile."""
        before: int = await self._db.value("compact_size")
        async with self._db.outside_transactions() as session:
            await session.connection.execute(sql("compact"), timeout=_UNHURRIED_S)
        after: int = await self._db.value("compact_size")
        return max(0, before - after)

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another has it."""
        now = await self._db.now()
        taken = await self._db.value("lead", name, holder, now, now + term // MILLISECOND)
        return taken is not None

    async def last_seen(self) -> datetime | None:
        """When a worker or a run from cron last led a task of upkeep; None: never."""
        return maybe_moment(await self._db.value("last_seen"))


def _before(now: int, retention: timedelta | None) -> int | None:
    return None if retention is None else now - retention // MILLISECOND


async def _drop_aged(
    session: Session, page: Sequence[Any], until: tuple[int | None, int | None]
) -> tuple[int, int]:
    """Drop what is past its retention; return how many bodies and how many histories."""
    bodies_until, histories_until = until
    histories = await _held(session, [row[1] for row in page if row[3]], histories_until)
    bodies = await _held(session, [row[1] for row in page if row[2] and not row[3]], bodies_until)
    if histories:
        aged = Messages(list(histories), list(histories.values()))
        await forget_messages(session, aged, leaves_parts=True)
    dropped = 0
    if bodies:
        dropped = await session.value("prune_contents", list(bodies), list(bodies.values()))
    return dropped, len(histories)


async def _held(
    session: Session, numbers: Sequence[int], until: int | None
) -> dict[int, MessageId]:
    """Those that can be dropped, with their ids: held before it is asked whether a dead letter keeps them.

    Whoever redrives or puts a dead letter back holds the entry, too: it comes before or after us.
    """
    if not numbers:
        return {}
    held = [row[0] for row in await session.fetch("prune_hold", numbers, until)]
    return dict(await session.fetch("prune_free", held))
