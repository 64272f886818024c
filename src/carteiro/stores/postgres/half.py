"""The ledger without its queue: for a pair with a queue that is kept elsewhere."""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from carteiro import model
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pairing import owns_end, owns_start
from carteiro.ports.ledger import Closed
from carteiro.ports.queue import ClaimedEntry, Delay, QueueEntry, Share
from carteiro.stores.columns import FAR, entry_of, recipient_of
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.postgres.accept import accept
from carteiro.stores.postgres.changes import Held
from carteiro.stores.postgres.claim import with_suppressed
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import TO_BE_APPLIED, Asked, Judged, Ledger, without_jobs
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.tickets import Beside, opened

_ENTRY = slice(2, 24)  # the columns of an entry among those of `open`
_MOST_MARKS = 1000  # some minutes' worth
_TO_BE_TRIED_AGAIN = model.Settled(model.State.RETRY_SCHEDULED)


class PostgresLedger:
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, options: PostgresOptions) -> None:
        self._db = db
        self._ledger = Ledger(db, dead_letter_ttl_ms=options.dead_letter_ttl_ms)
        self._marks: deque[tuple[int, int]] = deque(maxlen=_MOST_MARKS)
        self._settled_up_to = 0

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages; a known id or key is replayed."""
        if not new:
            await self._db.fetch("accept_nothing")
            return []
        return await accept(self._db, new, await self._db.now())

    async def open(self, tickets: Sequence[ClaimedEntry]) -> list[model.LeasedJob | Delay | None]:
        """The messages of claimed jobs; a `Delay` for what must not be tried yet, None for what is over or unknown."""
        now = await self._db.now()
        rows = await self._db.fetch("open", [ticket.lease.job for ticket in tickets])
        found = {row[2]: row for row in rows}
        told = {row[26] for row in rows} - {None}
        people = await self._db.fetch("claim_recipients", sorted(told)) if told else []
        recipients = {recipient.id: recipient for recipient in map(recipient_of, people)}
        opened = [
            self._opened(ticket, found.get(ticket.lease.job), now, recipients) for ticket in tickets
        ]
        jobs = [each for each in opened if isinstance(each, model.LeasedJob)]
        tenants = {row[3] for row in rows if row[29]}
        heeded = iter(await with_suppressed(self._db, jobs, tenants, now))
        return [next(heeded) if isinstance(each, model.LeasedJob) else each for each in opened]

    def _opened(
        self,
        ticket: ClaimedEntry,
        row: Any,  # noqa: ANN401 - a row, or None
        now: int,
        recipients: Mapping[model.RecipientId, model.Recipient],
    ) -> model.LeasedJob | Delay | None:
        if row is None:
            return None
        entry = entry_of(row[_ENTRY])
        request_id, delivery, recipient_id, preset, content = row[24:29]
        recipient = recipients.get(recipient_id)
        beside = Beside(request_id, delivery, recipient_id, recipient, preset, content)
        job = opened(ticket, entry, beside, now)
        if isinstance(job, model.LeasedJob):
            held = Held(
                entry.id, row[0], row[1], entry.kind, entry.tenant, entry, is_remembered=True
            )
            self._ledger.memory.keep(ticket.lease, held)
        return job

    async def declare(
        self, starts: Sequence[model.Start], told: Sequence[bool | None]
    ) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made."""
        asked = [
            Asked(start.lease.job, start.lease, partial(_begin, start, is_its))
            for start, is_its in zip(starts, told, strict=True)
        ]
        answers, _ = await self._ledger.write(asked, keeps=True)
        return answers

    async def settle(self, ends: Sequence[model.End], told: Sequence[bool | None]) -> list[Closed]:
        """Store the verdicts: state, events and dead letter in one transaction."""
        asked = [
            Asked(end.lease.job, end.lease, partial(_finish, end, is_its))
            for end, is_its in zip(ends, told, strict=True)
        ]
        answers, _ = await self._ledger.write(asked)
        return answers

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> None:
        """The holds of declared attempts follow their claims, never back."""
        until = await self._db.now() + lease // MILLISECOND
        await self._db.fetch("extend_holds", *_pairs(leases), until)

    async def undeclared(self, leases: Sequence[model.Lease]) -> list[model.Lease]:
        """Those of the claims that have no attempt under way."""
        rows = await self._db.fetch("declared", *_pairs(leases))
        declared = {model.Lease(job, claim) for job, claim in rows}
        undeclared = [lease for lease in leases if lease not in declared]
        self._ledger.memory.forget(undeclared)
        return undeclared

    async def cancel(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End what waits, mark what is in flight; ``told``: whether a live lease is on it."""
        answers, _ = await self._ledger.write(
            [
                Asked(message, None, partial(_cancel, tenant, is_leased))
                for message, is_leased in zip(ids, told, strict=True)
            ]
        )
        return answers

    async def overdue(
        self, *, after: model.Cursor | None, limit: int
    ) -> tuple[list[model.MessageId], model.Cursor | None]:
        """Messages that waited beyond their time, and where the next page starts."""
        at, number = key_of(after, (-FAR, "0"))
        rows = await self._db.fetch("expire_find", await self._db.now(), at, int(number), limit)
        last = cursor_at(rows[-1][1], str(rows[-1][2])) if len(rows) == limit else None
        return [row[0] for row in rows], last

    async def expire(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None]
    ) -> list[model.MessageId]:
        """Bury what was not sent by its time; return what was. ``told``: whether a live lease is on it."""
        answers, _ = await self._ledger.write(
            [
                Asked(message, None, partial(_expire, is_leased))
                for message, is_leased in zip(ids, told, strict=True)
            ]
        )
        return [message for message, is_buried in zip(ids, answers, strict=True) if is_buried]

    async def unfinished(self, *, after: model.Cursor | None, limit: int) -> model.Page[QueueEntry]:
        """Every message that must have a job, page by page."""
        at, number = key_of(after, (-FAR, "0"))
        now = await self._db.now()
        rows = await self._db.fetch("unfinished_page", now, LONGEST_HOLD_MS, at, int(number), limit)
        entries = [QueueEntry(*row[:6]) for row in rows]
        last = cursor_at(rows[-1][6], str(rows[-1][7])) if len(rows) == limit else None
        return model.Page(entries, last)

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages that came after a place, and the place after them; None: the place only.

        Numbers are given out before their transactions commit: a place is only left behind once everybody who may have
        taken a number up to it has ended.
        """
        last, oldest, newest = await self._db.first("unfinished_mark")
        while self._marks and self._marks[0][1] <= oldest:
            self._settled_up_to = max(self._settled_up_to, self._marks.popleft()[0])
        self._marks.append((last, newest))
        if after is None:
            return [], self._settled_up_to
        now = await self._db.now()
        rows = await self._db.fetch("unfinished_recent", now, LONGEST_HOLD_MS, after, limit)
        reached = rows[-1][6] if len(rows) == limit else self._settled_up_to
        return [QueueEntry(*row[:6]) for row in rows], reached


class PostgresLedgerDesk:
    """See `carteiro.ports.ledger.LedgerDesk` for what it promises."""

    def __init__(self, db: Database, erasing: SqlErasing) -> None:
        self._db = db
        self._erasing = erasing

    async def entries(self, ids: Sequence[model.MessageId]) -> list[QueueEntry]:
        """The jobs of those of the messages that must have one."""
        now = await self._db.now()
        rows = await self._db.fetch("unfinished_these", now, LONGEST_HOLD_MS, ids)
        return [QueueEntry(*row) for row in rows]

    async def shares(self, ids: Sequence[model.TenantId]) -> list[Share]:
        """What these tenants may have of the machine."""
        return [Share(*row) for row in await self._db.fetch("shares", ids)]

    async def all_shares(self, *, after: model.TenantId | None, limit: int) -> list[Share]:
        """What the next tenants, by id, may have."""
        return [Share(*row) for row in await self._db.fetch("shares_all", after or "", limit)]

    async def limits(self) -> Mapping[model.KindName, model.SendLimit]:
        """The limits that all claims of a kind share."""
        rows = await self._db.fetch("limits")
        return {kind: model.SendLimit(count, per_ms * MILLISECOND) for kind, count, per_ms in rows}

    async def buried(self, ids: Sequence[model.MessageId]) -> Mapping[model.MessageId, int]:
        """Until when those of the messages are kept that are dead letters."""
        return dict(await self._db.fetch("buried", ids))

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


def _pairs(leases: Sequence[model.Lease]) -> tuple[list[str], list[str]]:
    return [each.job for each in leases], [each.claim for each in leases]


def _begin(start: model.Start, told: bool | None, held: Held | None, now: int) -> Judged:  # noqa: FBT001
    if held is None or held.entry is None:
        return Judged(model.Refused(model.RefusedWhy.LOST))
    owner = owns_start(held.entry, start.lease.claim, told=told, now=now)
    answer, change = lifecycle.begin(held.entry, start, owner=owner, now=now)
    if held.is_requested and change is not None:
        return Judged(TO_BE_APPLIED)
    return Judged(answer, without_jobs(change))


def _finish(end: model.End, told: bool | None, held: Held | None, now: int) -> Judged:  # noqa: FBT001
    if held is None or held.entry is None:
        return Judged(Closed(model.Late(None)))
    owner = owns_end(held.entry, end, told=told, now=now)
    answer, change = lifecycle.finish(held.entry, end, owner=owner, now=now)
    again = held.entry.due_at if answer == _TO_BE_TRIED_AGAIN else None
    return Judged(Closed(answer, again), without_jobs(change), owner)


def _cancel(tenant: model.TenantId, told: bool | None, held: Held | None, now: int) -> Judged:  # noqa: FBT001
    if held is None or held.entry is None or held.entry.tenant != tenant:
        return Judged(model.CancelAnswer.NOT_FOUND)
    answer, change = lifecycle.cancel(held.entry, leased=told is not False, now=now)
    return Judged(answer, without_jobs(change))


def _expire(told: bool | None, held: Held | None, now: int) -> Judged:  # noqa: FBT001
    if held is None or held.entry is None:
        return Judged(answer=False)
    change = lifecycle.expire(held.entry, leased=told is not False, now=now)
    return Judged(change is not None, without_jobs(change))
