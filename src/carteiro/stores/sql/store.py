"""The ledger's part of the path: declare, settle, cancel."""

from collections.abc import Sequence

from carteiro import model
from carteiro.stores.sql import ledger
from carteiro.stores.sql.session import Wake


class SqlStore:
    """See `carteiro.ports.store.Store` for what it promises; a store adds the queue's part."""

    def __init__(self, entries: ledger.Entries, wake: Wake) -> None:
        self._entries = entries
        self._wake = wake

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made; the hold replaces the lease."""
        answers, _ = await self._entries.write(ledger.starts(starts), declares=True)
        return answers

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events, queue and dead letter in one transaction."""
        answers, has_work = await self._entries.write(ledger.ends(ends))
        if has_work:
            await self._wake.tell()
        return answers

    async def cancel(
        self, ids: Sequence[model.MessageId], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End waiting messages; mark those in flight or in doubt, so that a retry becomes CANCELLED."""
        answers, has_work = await self._entries.write(ledger.cancels(ids, tenant))
        if has_work:
            await self._wake.tell()
        return answers
