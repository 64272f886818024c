"""The ledger without a queue, for a pair with a separate queue."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from carteiro import model
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, Entry, is_open
from carteiro.policy.pairing import is_over, not_yet
from carteiro.ports.ledger import Closed
from carteiro.ports.queue import ClaimedEntry, Delay, QueueEntry, Share
from carteiro.ports.store import Store
from carteiro.stores.columns import FAR, entry_of, recipient_of
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.heeding import with_suppressed
from carteiro.stores.sql import ledger
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sql.session import Database, Session

QueueAnswers: TypeAlias = Sequence[bool | None]
_ENTRY = slice(2, 24)  # the columns of an entry among those of `open`
_FIRST = (-FAR, "0")
_DELIVERIES = {each.value: each for each in model.Delivery}


class SqlLedger(ABC):
    """See `carteiro.ports.ledger.Ledger` for what it promises."""

    def __init__(self, db: Database, entries: ledger.Entries, store: Store) -> None:
        self._db = db
        self._entries = entries
        self.accept = store.accept

    # --- claimed jobs

    async def open(self, claimed: Sequence[ClaimedEntry]) -> list[model.LeasedJob | Delay | None]:
        """The messages of claimed jobs: a `Delay` if it is too early, None if finished or unknown."""
        now = await self._db.now()
        return await self._db.look(lambda session: self._open(session, claimed, now))

    async def _open(
        self, session: Session, claimed: Sequence[ClaimedEntry], now: int
    ) -> list[model.LeasedJob | Delay | None]:
        rows = await session.fetch("open", ids=[claim.lease.job for claim in claimed])
        found = {row[2]: row for row in rows}
        named = sorted({row[26] for row in rows} - {None})
        people = await session.fetch("claim_recipients", ids=named) if named else []
        recipients = {recipient.id: recipient for recipient in map(recipient_of, people)}
        opened = [
            self._opened(claim, found[claim.lease.job], recipients, now)
            if claim.lease.job in found
            else None
            for claim in claimed
        ]
        jobs = [each for each in opened if isinstance(each, model.LeasedJob)]
        heeded = iter(
            await with_suppressed(session, jobs, {row[3] for row in rows if row[29]}, now)
        )
        return [next(heeded) if isinstance(each, model.LeasedJob) else each for each in opened]

    def _opened(
        self,
        claim: ClaimedEntry,
        row: Sequence[Any],
        recipients: Mapping[model.RecipientId, model.Recipient],
        now: int,
    ) -> model.LeasedJob | Delay | None:
        entry = entry_of(row[_ENTRY])
        if is_over(entry):
            return None
        until = not_yet(entry, due_at=claim.due_at, now=now)
        if until is not None:
            return Delay(claim.lease, entry.due_at, until)
        self._remember(claim.lease, entry, row)
        request_id, delivery, recipient_id, preset, content = row[24:29]
        return model.LeasedJob(
            lease=claim.lease,
            kind=claim.kind,
            tenant=claim.tenant,
            claims=claim.claims,
            content=content,
            ledger_tenant=entry.tenant,
            request_id=request_id,
            delivery=_DELIVERIES[delivery],
            attempts=entry.attempts,
            charged=entry.charged,
            in_doubt=entry.in_doubt,
            revision=entry.revision,
            open_attempt=is_open(entry),
            expires_in=(entry.expires_at - now) * MILLISECOND,
            cancel_requested=entry.cancel_requested_at is not None,
            recipient_id=recipient_id,
            recipient=recipients.get(recipient_id),
            retry_preset=preset,
            provider=entry.provider,
        )

    def _remember(self, lease: model.Lease, entry: Entry, row: Sequence[Any]) -> None:  # noqa: B027 - some need not
        """Remember an entry that will be declared or settled, in a store that then need not load it."""

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

    async def declare(
        self, starts: Sequence[model.Start], told: QueueAnswers
    ) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made."""
        answers, _ = await self._entries.write(ledger.starts(starts, told), declares=True)
        return answers

    async def settle(self, ends: Sequence[model.End], told: QueueAnswers) -> list[Closed]:
        """Store the verdicts: state, events and dead letter in one transaction."""
        answers, _ = await self._entries.write(ledger.closings(ends, told))
        return answers

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

    async def overdue(
        self, *, after: model.Cursor | None, limit: int
    ) -> tuple[list[model.MessageId], model.Cursor | None]:
        """Messages past their time to live, and where the next page starts."""
        return await overdue(self._db, after, limit)

    async def unfinished(self, *, after: model.Cursor | None, limit: int) -> model.Page[QueueEntry]:
        """Every message that must have a job, in pages."""
        expires_at, edge = key_of(after, _FIRST)
        now, longest = await self._db.now(), LONGEST_HOLD_MS
        asked = {"expires_at": expires_at, "edge": edge, "limit": limit}
        rows = await self._db.fetch("unfinished_page", now=now, longest=longest, **asked)
        entries = [QueueEntry(*row[:6]) for row in rows]
        return model.Page(entries, cursor_at(*rows[-1][6:]) if len(rows) == limit else None)

    @abstractmethod
    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only."""

    async def _recent(self, after: int, limit: int) -> list[Any]:
        now, longest = await self._db.now(), LONGEST_HOLD_MS
        asked = {"now": now, "longest": longest, "after": after, "limit": limit}
        return await self._db.fetch("unfinished_recent", **asked)


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
        return [QueueEntry(*row) for row in rows]

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
    db: Database, after: model.Cursor | None, limit: int
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
