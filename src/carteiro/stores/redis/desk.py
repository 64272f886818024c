"""Operations of the queue in Redis outside the path, and queries on it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from uuid_utils import uuid7

from carteiro import model
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.pacing import Pace
from carteiro.ports.queue import QueueMemory, Share
from carteiro.stores.queue_columns import depth_of, due_of, place_of
from carteiro.stores.redis.pieces import pieces
from carteiro.stores.redis.server import Server
from carteiro.stores.tenant_columns import standing_of

_PATIENCE = timedelta(seconds=5)  # users wait for these, not workers
_PAGE = 500


class RedisDesk:
    """See `carteiro.ports.queue.QueueDesk` for what it promises."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def look(self) -> QueueMemory:
        """Its memory use; fails whenever a claim would."""
        used, most, not_counted, rejected, failed = await self._server.run("look")
        is_full = 0 < most < used - not_counted
        return QueueMemory(used, most, is_full, rejected, failed, self._server.run_id)

    async def share(self, shares: Sequence[Share]) -> None:
        """Set shares of tenants; they apply to waiting jobs at once."""
        for page in pieces(shares, _PAGE):
            flat = [word for each in page for word in _words(each)]
            await self._server.run("share", self._server.now, *flat, patience=_PATIENCE)

    async def forget(self, tenant: model.TenantId) -> None:
        """Remove a tenant and all its jobs."""
        await self._server.run("forget", tenant, patience=_PATIENCE)

    async def busy(self, tenant: model.TenantId) -> list[model.MessageId]:
        """The tenant's jobs with a live lease."""
        found: list[model.MessageId] = await self._server.run("busy", self._server.now, tenant)
        return found

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or remove the limit that all claims of a kind share."""
        asked = limit and (limit.count, limit.per // MILLISECOND)
        await self._server.run("limit", kind, *(asked or ()), patience=_PATIENCE)

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Set the fairness settings of all workers; None: as configured in each."""
        asked = fairness and (int(fairness.enable_round_robin), fairness.max_jobs_per_tenant_batch)
        await self._server.run("tune", *(asked or ()), patience=_PATIENCE)

    async def founded(self) -> str:
        """Allow claims, as all tenants and limits are set now; return a token that identifies the queue."""
        epoch = await self._server.know()
        return f"{epoch} {await self._server.run('found', epoch, str(uuid7()), patience=_PATIENCE)}"

    async def is_complete(self) -> bool:
        """True if every unfinished message was put since the queue was last lost or replaced."""
        epoch = await self._server.know()
        founded, completed = await self._server.run("know", patience=_PATIENCE)
        return bool(epoch == founded == completed)

    async def completed(self, token: str) -> None:
        """Record that every unfinished message was put; ignored if the token is of another queue."""
        await self._server.run("complete", *token.split(), patience=_PATIENCE)

    async def note(self, text: str = "") -> str:
        """Take the note of the last relay, '' without one; leave this one for the next relay."""
        epoch = await self._server.know()
        return str(await self._server.run("note", epoch, text, patience=_PATIENCE))

    async def standings(
        self, kind: model.KindName, fairness: model.Fairness
    ) -> list[model.Standing]:
        """The standing of each tenant with jobs or history of this kind, least served first."""
        rows = await self._server.run("standings", self._server.now, kind, patience=_PATIENCE)
        rows.sort(key=lambda row: (row[0], row[2], row[1]))
        return [
            standing_of(kind, (tenant, last_at or None, turn, _maybe(since), *rest), fairness)
            for _, tenant, _, last_at, turn, since, *rest in rows
        ]

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """State of a message's job; None if it has none."""
        now, *told = await self._server.run("place", self._server.now, message, patience=_PATIENCE)
        if not told:
            return None
        parked_until, is_claimed, claims, alarm, in_flight, count, per_ms, draws, *before = told
        row = (_maybe(parked_until), is_claimed, claims, _maybe(alarm), in_flight)
        ahead, parked, since = before
        return place_of((*row, _maybe(count), per_ms, draws, ahead, parked, _maybe(since)), now)

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next claimable jobs, at most ``limit``, after at most as many claimed ones."""
        words = (self._server.now, kind, tenant, limit)
        return due_of(await self._server.run("due", *words, patience=_PATIENCE), limit)

    async def depths(self) -> list[model.Depth]:
        """Queue depth, by kind."""
        now, *rows = await self._server.run("depths", self._server.now, patience=_PATIENCE)
        return [depth_of((*row[:3], _maybe(row[3])), now) for row in sorted(rows)]

    async def bury(self, expiries: Mapping[model.MessageId, int]) -> None:
        """Show these dead letters in the index until their expiry."""
        for page in pieces(list(expiries.items()), _PAGE):
            flat = [word for message, at in page for word in (at, message)]
            await self._server.run("bury", *flat)

    async def unbury(self, ids: Sequence[model.MessageId]) -> None:
        """Remove these from the index."""
        for page in pieces(ids, _PAGE):
            await self._server.run("unbury", *page)

    async def buried(self) -> list[model.MessageId]:
        """All messages in the index."""
        found: list[model.MessageId] = await self._server.run("buried", patience=_PATIENCE)
        return found


def _words(share: Share) -> tuple[str | int, ...]:
    rate = share.rate_per_second
    pace = Pace(0, 0) if rate is None else Pace.per_second(rate)
    cap = -1 if share.cap is None else share.cap
    return (share.tenant, share.stride, cap, pace.interval_us, pace.burst_us, int(share.is_held))


def _maybe(number: int) -> int | None:
    return None if number < 0 else number
