"""The part of the path that stores on SQL share."""

from collections.abc import Sequence

from carteiro import model
from carteiro.stores.sql import ledger
from carteiro.stores.sql.session import Wake


class SqlStore:
    """See `carteiro.ports.store.Store` for what it promises; a store adds the rest."""

    def __init__(self, entries: ledger.Entries, wake: Wake) -> None:
        self._entries = entries
        self._wake = wake

    async def cancel(
        self, ids: Sequence[model.MessageId], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End waiting messages; mark those in flight or in doubt, so that a retry becomes CANCELLED."""
        answers, has_work = await self._entries.write(ledger.cancels(ids, tenant))
        if has_work:
            await self._wake.tell()
        return answers
