"""The ledger without its queue: for a pair with a queue that is kept elsewhere."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from carteiro import model
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.ports.ledger import Closed
from carteiro.ports.queue import ClaimedEntry, Delay, QueueEntry, Share
from carteiro.stores.columns import FAR, entry_of
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.claim import presets_of, recipients_of, with_suppressed
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.reader import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.store import SqliteStore
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.tickets import Beside, opened

_ENTRY = 22  # columns of an entry
_OVERLAP = 1000  # numbers of what was erased are given again: looked at once more


class SqliteLedger:
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(
        self, store: SqliteStore, writer: Writer, reader: Reader, options: SqliteOptions
    ) -> None:
        self._store = store
        self._writer = writer
        self._reader = reader
        self._options = options

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages; a known id or key is replayed."""
        return await self._store.accept(new)

    async def open(self, tickets: Sequence[ClaimedEntry]) -> list[model.LeasedJob | Delay | None]:
        """The messages of claimed jobs; a `Delay` for what must not be tried yet, None for what is over or unknown."""
        now = self._options.clock()
        return await self._writer.do(lambda db: _open(db, tickets, now), durable=False)

    async def declare(
        self, starts: Sequence[model.Start], told: Sequence[bool | None]
    ) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made."""
        clock = self._options.clock
        return await self._writer.do(lambda db: ledger.declare(db, starts, clock(), told=told))

    async def settle(self, ends: Sequence[model.End], told: Sequence[bool | None]) -> list[Closed]:
        """Store the verdicts: state, events and dead letter in one transaction."""
        clock, ttl_ms = self._options.clock, self._options.dead_letter_ttl_ms

        def close(db: sqlite3.Connection) -> list[Closed]:
            now = clock()
            answers, _ = ledger.settle(db, ends, now, dead_letter_ttl_ms=ttl_ms, told=told)
            waits = [
                end.lease.job
                for end, answer in zip(ends, answers, strict=True)
                if answer == _TO_BE_TRIED_AGAIN
            ]
            due = {each.id: each.due_at for each in _entries(db, waits, now)} if waits else {}
            return [
                Closed(answer, due.get(end.lease.job) if answer == _TO_BE_TRIED_AGAIN else None)
                for end, answer in zip(ends, answers, strict=True)
            ]

        return await self._writer.do(close)

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> None:
        """The holds of declared attempts follow their claims, never back."""
        clock, pairs = self._options.clock, _pairs(leases)
        await self._writer.do(
            lambda db: run(db, "extend_holds", leases=pairs, until=clock() + lease // MILLISECOND),
            durable=False,
        )

    async def undeclared(self, leases: Sequence[model.Lease]) -> list[model.Lease]:
        """Those of the claims that have no attempt under way."""
        pairs = _pairs(leases)
        rows = await self._writer.do(
            lambda db: run(db, "declared", leases=pairs).fetchall(), durable=False
        )
        declared = {model.Lease(job, claim) for job, claim in rows}
        return [lease for lease in leases if lease not in declared]

    async def cancel(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End what waits, mark what is in flight; ``told``: whether a live lease is on it."""
        clock = self._options.clock
        answers, _ = await self._writer.do(
            lambda db: ledger.cancel(db, ids, tenant, clock(), told=told)
        )
        return answers

    async def overdue(
        self, *, after: model.Cursor | None, limit: int
    ) -> tuple[list[model.MessageId], model.Cursor | None]:
        """Messages that waited beyond their time, and where the next page starts."""
        now, (at, place) = self._options.clock(), key_of(after, (-FAR, ""))
        rows = await self._reader.ask(
            lambda db: run(
                db, "expire_find", now=now, expires_at=at, id=place, limit=limit
            ).fetchall()
        )
        last = cursor_at(rows[-1][1], rows[-1][0]) if len(rows) == limit else None
        return [row[0] for row in rows], last

    async def expire(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None]
    ) -> list[model.MessageId]:
        """Bury what was not sent by its time; return what was. ``told``: whether a live lease is on it."""
        clock, ttl_ms = self._options.clock, self._options.dead_letter_ttl_ms
        return await self._writer.do(
            lambda db: ledger.expire_these(db, ids, clock(), dead_letter_ttl_ms=ttl_ms, told=told)
        )

    async def unfinished(self, *, after: model.Cursor | None, limit: int) -> model.Page[QueueEntry]:
        """Every message that must have a job, page by page."""
        (at, place), asked = key_of(after, (-FAR, "")), self._asked()
        rows = await self._reader.ask(
            lambda db: run(
                db, "unfinished_page", expires_at=at, id=place, limit=limit, **asked
            ).fetchall()
        )
        entries = [QueueEntry(*row[:6]) for row in rows]
        return model.Page(
            entries, cursor_at(rows[-1][6], rows[-1][0]) if len(rows) == limit else None
        )

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages that came after a place, and the place after them; None: the place only."""
        asked = self._asked()

        def look(db: sqlite3.Connection) -> tuple[list[QueueEntry], int]:
            [following] = run(db, "accept_next_no").fetchone()
            last = following - 1
            if after is None:
                return [], last
            start = min(after, last) - _OVERLAP
            rows = run(db, "unfinished_recent", after=start, limit=limit + _OVERLAP, **asked)
            found = rows.fetchall()
            is_full = len(found) == limit + _OVERLAP
            return [QueueEntry(*row[:6]) for row in found], found[-1][6] if is_full else last

        return await self._reader.ask(look)

    def _asked(self) -> Mapping[str, int]:
        return {"now": self._options.clock(), "longest": LONGEST_HOLD_MS}


class SqliteLedgerDesk:
    """See `carteiro.ports.ledger.LedgerDesk` for what it promises."""

    def __init__(
        self,
        reader: Reader,
        erasing: SqlErasing,
        options: SqliteOptions,
    ) -> None:
        self._reader = reader
        self._erasing = erasing
        self._clock = options.clock

    async def entries(self, ids: Sequence[model.MessageId]) -> list[QueueEntry]:
        """The jobs of those of the messages that must have one."""
        now = self._clock()
        return await self._reader.ask(lambda db: _entries(db, ids, now))

    async def shares(self, ids: Sequence[model.TenantId]) -> list[Share]:
        """What these tenants may have of the machine."""
        rows = await self._reader.ask(lambda db: run(db, "shares", ids=as_json(ids)).fetchall())
        return [_share(row) for row in rows]

    async def all_shares(self, *, after: model.TenantId | None, limit: int) -> list[Share]:
        """What the next tenants, by id, may have."""
        rows = await self._reader.ask(
            lambda db: run(db, "shares_all", after=after or "", limit=limit).fetchall()
        )
        return [_share(row) for row in rows]

    async def limits(self) -> Mapping[model.KindName, model.SendLimit]:
        """The limits that all claims of a kind share."""
        rows = await self._reader.ask(lambda db: run(db, "limits").fetchall())
        return {kind: model.SendLimit(count, per_ms * MILLISECOND) for kind, count, per_ms in rows}

    async def buried(self, ids: Sequence[model.MessageId]) -> Mapping[model.MessageId, int]:
        """Until when those of the messages are kept that are dead letters."""
        return dict(
            await self._reader.ask(lambda db: run(db, "buried", ids=as_json(ids)).fetchall())
        )

    async def addressed(
        self, recipient: model.RecipientId, *, tenant: model.TenantId, limit: int
    ) -> list[model.MessageId]:
        """Unfinished messages to a recipient that nobody asked to cancel."""
        return await self._erasing.addressed(recipient, tenant=tenant, limit=limit)

    async def erase(
        self, tenant: model.TenantId, *, busy: Sequence[model.MessageId], limit: int
    ) -> tuple[model.Erased | None, list[model.MessageId]]:
        """As `Tenants.erase`, past what is ``busy``; with the messages that went."""
        return await self._erasing.tenant(tenant, busy=busy, limit=limit)


_TO_BE_TRIED_AGAIN = model.Settled(model.State.RETRY_SCHEDULED)


def _entries(db: sqlite3.Connection, ids: Sequence[model.MessageId], now: int) -> list[QueueEntry]:
    rows = run(db, "unfinished_these", ids=as_json(ids), now=now, longest=LONGEST_HOLD_MS)
    return [QueueEntry(*row) for row in rows]


def _share(row: Sequence[Any]) -> Share:
    tenant, stride, cap, rate, is_held = row
    return Share(tenant, stride, cap, rate, bool(is_held))


def _pairs(leases: Sequence[model.Lease]) -> str:
    return as_json([(each.job, each.claim) for each in leases])


def _open(
    db: sqlite3.Connection, tickets: Sequence[ClaimedEntry], now: int
) -> list[model.LeasedJob | Delay | None]:
    rows = run(db, "open", ids=as_json([each.lease.job for each in tickets])).fetchall()
    people = recipients_of(db, {row[24] for row in rows} - {None})
    types = {(row[1], row[25]) for row in rows if row[25] is not None}
    presets = presets_of(db, types)
    opened = [
        _opened(ticket, row, now, people, presets)
        for ticket, row in zip(tickets, rows, strict=True)
    ]
    jobs = [each for each in opened if isinstance(each, model.LeasedJob)]
    told = iter(with_suppressed(db, jobs, {row[1] for row in rows if row[28]}, now))
    return [next(told) if isinstance(each, model.LeasedJob) else each for each in opened]


def _opened(
    ticket: ClaimedEntry,
    row: Sequence[Any],
    now: int,
    people: Mapping[str, model.Recipient],
    presets: Mapping[tuple[str, str], str | None],
) -> model.LeasedJob | Delay | None:
    if row[0] is None:
        return None
    entry = entry_of(row[:_ENTRY])
    request_id, delivery, recipient_id, template_type, preset, content = row[_ENTRY:28]
    own = presets.get((entry.tenant, template_type)) or preset
    recipient = people.get(recipient_id)
    beside = Beside(request_id, delivery, recipient_id, recipient, own, content)
    return opened(ticket, entry, beside, now)
