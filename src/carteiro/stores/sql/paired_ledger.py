"""The ledger without a queue, for a pair with a separate queue."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

from carteiro import model
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pairing import not_yet
from carteiro.ports.ledger import Told
from carteiro.ports.queue import Delay, QueueEntry, Share, Ticket
from carteiro.ports.store import Store
from carteiro.stores.columns import FAR, recipient_of
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.heeding import with_suppressed
from carteiro.stores.sql import ledger
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sql.session import Database, Session

QueueAnswers: TypeAlias = Sequence[Told]
_STATE, _DUE = 2, 4  # columns of `open`
_WAITING, _OPEN = model.State.ENQUEUED.value, model.State.SENT_ATTEMPT.value
_FIRST = (-FAR, "0")
_DELIVERIES = {each.value: each for each in model.Delivery}


class SqlLedger(ABC):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, entries: ledger.Entries, store: Store) -> None:
        self._db = db
        self._entries = entries
        self.accept = store.accept
        self.declare, self.settle = entries.declare, entries.close
        self.overdue = partial(overdue, db)

    # --- claimed jobs

    async def open(
        self, claim: model.ClaimId, tickets: Sequence[Ticket]
    ) -> list[model.LeasedJob | Delay | None]:
        """The messages of claimed jobs: a `Delay` if it is too early, None if finished or unknown."""
        now = await self._db.now()
        return await self._db.look(lambda session: self._open(session, claim, tickets, now))

    async def _open(
        self, session: Session, claim: model.ClaimId, tickets: Sequence[Ticket], now: int
    ) -> list[model.LeasedJob | Delay | None]:
        rows = await self._rows(session, tickets)
        found = {row[0]: row for row in rows}
        people = sorted({row[14] for row in rows} - {None})
        named = await session.fetch("claim_recipients", ids=people) if people else []
        recipients = {recipient.id: recipient for recipient in map(recipient_of, named)}
        put_off = _put_off(claim, tickets, found, now)
        jobs = [
            model.LeasedJob(
                model.Lease(job, claim),
                *(kind, tenant, claims, row[16], row[1], row[12], _DELIVERIES[row[13]]),
                *(row[6], row[7], row[8], row[9], row[_STATE] == _OPEN),
                (row[5] - now) * MILLISECOND,
                row[10] == 1,
                row[14],
                recipients.get(row[14]) if recipients else None,
                row[15],
                row[11],
            )
            for job, kind, tenant, claims, _ in tickets
            if job not in put_off
            for row in (found[job],)
        ]
        heeded = await with_suppressed(session, jobs, {row[1] for row in rows if row[17]}, now)
        if not put_off:
            return [*heeded]
        left = iter(heeded)
        return [put_off[each[0]] if each[0] in put_off else next(left) for each in tickets]

    async def _rows(self, session: Session, tickets: Sequence[Ticket]) -> list[Any]:
        return await session.fetch("open", ids=[ticket[0] for ticket in tickets])

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> None:
        """Extend the holds of declared attempts like their leases; never shorten one."""
        until = await self._db.now() + lease // MILLISECOND
        await self._extend_holds(leases=_pairs(leases), until=until)

    async def _extend_holds(self, **given: object) -> None:
        await self._db.write(lambda session: session.run("extend_holds", **given), durable=False)

    async def undeclared(self, leases: Sequence[model.Lease]) -> list[model.Lease]:
        """The leases without an attempt in flight."""
        pairs = _pairs(leases)
        rows = await self._db.look(lambda session: session.fetch("declared", leases=pairs))
        declared = {model.Lease(job, claim) for job, claim in rows}
        return [lease for lease in leases if lease not in declared]

    # --- changes

    async def cancel(
        self, ids: Sequence[model.MessageId], told: QueueAnswers, *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End waiting messages, mark those in flight; ``told``: True if the job has a live lease."""
        answers, _ = await self._entries.write(ledger.cancels(ids, tenant, told))
        return answers

    async def expire(
        self, ids: Sequence[model.MessageId], told: QueueAnswers
    ) -> list[model.MessageId]:
        """Expire messages past their time to live; return those. ``told``: True if the job has a live lease."""
        answers, _ = await self._entries.write(ledger.expiries(ids, told))
        return [message for message, is_buried in zip(ids, answers, strict=True) if is_buried]

    # --- lists

    async def unfinished(self, *, after: model.Cursor | None, limit: int) -> model.Page[QueueEntry]:
        """Every message that must have a job, in pages."""
        expires_at, edge = key_of(after, _FIRST)
        now, longest = await self._db.now(), LONGEST_HOLD_MS
        asked = {"expires_at": expires_at, "edge": edge, "limit": limit}
        rows = await self._db.fetch("unfinished_page", now=now, longest=longest, **asked)
        entries = [row[:6] for row in rows]
        return model.Page(entries, cursor_at(*rows[-1][6:]) if len(rows) == limit else None)

    @abstractmethod
    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only."""

    async def _recent(self, after: int, limit: int) -> list[Any]:
        now, longest = await self._db.now(), LONGEST_HOLD_MS
        asked = {"now": now, "longest": longest, "after": after, "limit": limit}
        return await self._db.fetch("unfinished_recent", **asked)


def _put_off(
    claim: model.ClaimId,
    tickets: Sequence[Ticket],
    found: Mapping[str, Sequence[Any]],
    now: int,
) -> dict[model.MessageId, Delay | None]:
    """Those of the claimed jobs that cannot run now; None: finished or unknown."""
    put_off: dict[model.MessageId, Delay | None] = {}
    for job, _, _, _, queued_at in tickets:
        if job not in found:
            put_off[job] = None
        elif found[job][_STATE] != _WAITING or found[job][_DUE] > now:
            state, held_until, due_at = found[job][_STATE : _DUE + 1]
            until = not_yet(state, held_until, due_at, queued_at=queued_at, now=now)
            if state in model.FINISHED:
                put_off[job] = None
            elif until is not None:
                put_off[job] = Delay(model.Lease(job, claim), due_at, until)
    return put_off


class SqlLedgerDesk:
    """See `carteiro.ports.ledger.LedgerDesk` for what it promises."""

    def __init__(self, db: Database, erasing: SqlErasing) -> None:
        self._db = db
        self.addressed = erasing.addressed
        self.erase = erasing.tenant

    async def entries(self, ids: Sequence[model.MessageId]) -> list[QueueEntry]:
        """The jobs of these messages; messages that need none are left out."""
        now, longest = await self._db.now(), LONGEST_HOLD_MS
        rows = await self._db.fetch("unfinished_these", ids=ids, now=now, longest=longest)
        return [row[:6] for row in rows]

    async def shares(self, ids: Sequence[model.TenantId]) -> list[Share]:
        """The shares of these tenants."""
        return [_share(*row) for row in await self._db.fetch("shares", ids=ids)]

    async def all_shares(self, *, after: model.TenantId | None, limit: int) -> list[Share]:
        """The shares of the next tenants, by id."""
        rows = await self._db.fetch("shares_all", after=after or "", limit=limit)
        return [_share(*row) for row in rows]

    async def limits(self) -> Mapping[model.KindName, model.SendLimit]:
        """The limits that all claims of a kind share."""
        rows = await self._db.fetch("limits")
        return {kind: model.SendLimit(count, per_ms * MILLISECOND) for kind, count, per_ms in rows}

    async def buried(self, ids: Sequence[model.MessageId]) -> Mapping[model.MessageId, int]:
        """Expiry of the entries of these dead letters, in milliseconds since 1970."""
        return dict(await self._db.fetch("buried", ids=ids))


async def overdue(
    db: Database, *, after: model.Cursor | None, limit: int
) -> tuple[list[model.MessageId], model.Cursor | None]:
    """Return messages that waited beyond their time, and where the next page starts."""
    expires_at, edge = key_of(after, _FIRST)
    asked = {"expires_at": expires_at, "edge": edge, "limit": limit}
    rows = await db.fetch("expire_find", now=await db.now(), **asked)
    return [row[0] for row in rows], cursor_at(*rows[-1][1:]) if len(rows) == limit else None


def _share(tenant: model.TenantId, stride: int, cap: int, rate: float, is_held: int) -> Share:
    return Share(tenant, stride, cap, rate, bool(is_held))


def _pairs(leases: Sequence[model.Lease]) -> list[tuple[str, str]]:
    return [(each.job, each.claim) for each in leases]
