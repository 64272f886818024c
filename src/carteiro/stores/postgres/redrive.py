"""The ledger's part in a redrive."""

from collections.abc import Mapping, Sequence
from typing import cast

from carteiro.model import MessageId
from carteiro.policy.lifecycle import Change
from carteiro.stores.postgres import database, ledger
from carteiro.stores.postgres.changes import Changes, Held
from carteiro.stores.sql.session import Session


class PostgresLedgerPart:
    """See `carteiro.stores.sql.redrive.LedgerPart`."""

    async def load(self, session: Session, ids: Sequence[MessageId]) -> Mapping[MessageId, Held]:
        """Return the entries of those of the ids that there are."""
        return await ledger.load(cast("database.Session", session), ids)

    async def save(self, session: Session, changed: Sequence[tuple[Held, Change]], now: int) -> int:
        """Store what the rules changed, unless somebody else did meanwhile; return how many were stored."""
        changes = Changes(now)
        for held, change in changed:
            changes.apply(held, change)
        stored, _ = await changes.save(cast("database.Session", session))
        return len(stored)
