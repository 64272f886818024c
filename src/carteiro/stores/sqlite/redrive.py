"""The ledger's part in a redrive."""

from collections.abc import Mapping, Sequence
from typing import cast

from carteiro.model import MessageId
from carteiro.policy.lifecycle import Change
from carteiro.stores.sql.session import Session
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.database import SqliteSession


class SqliteLedgerPart:
    """See `carteiro.stores.sql.redrive.LedgerPart`."""

    def __init__(self, *, has_queue: bool) -> None:
        self._has_queue = has_queue

    async def load(
        self, session: Session, ids: Sequence[MessageId]
    ) -> Mapping[MessageId, ledger.Held]:
        """Return the entries of those of the ids that there are."""
        return ledger.load(cast("SqliteSession", session).connection, ids)

    async def save(
        self, session: Session, changed: Sequence[tuple[ledger.Held, Change]], now: int
    ) -> int:
        """Store what the rules changed; nobody else can meanwhile."""
        connection = cast("SqliteSession", session).connection
        changes = ledger.Changes(connection, now, has_queue=self._has_queue)
        for held, change in changed:
            changes.apply(held, change)
        changes.save()
        return len(changed)
