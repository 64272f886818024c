"""What providers tell later, on Postgres: the event, what it proves and whom it suppresses in one transaction.

Each message is noted only if nobody changed it meanwhile; else it is loaded and judged again. So the same
thing, told twice at the same moment, is noted once.
"""

from collections.abc import Sequence

from carteiro.errors import StoreUnavailable
from carteiro.model import Feedback, MessageId, NoteAnswer
from carteiro.policy import lifecycle
from carteiro.policy.suppression import suppressions
from carteiro.stores.columns import in_ms
from carteiro.stores.postgres.changes import Changes
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.ledger import load
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.suppressions import put
from carteiro.stores.suppression_columns import told_of

_MOST_TRIES = 20  # somebody changes it as fast as we judge: let the caller try again


class PostgresTracking:
    """See `carteiro.ports.tracking.Tracking` for what it promises."""

    def __init__(self, db: Database, wake: PostgresWake) -> None:
        self._db = db
        self._wake = wake

    async def note(self, told: Sequence[Feedback]) -> list[NoteAnswer]:
        """Put feedback on the timelines of its messages, and draw the consequences."""
        return [await self._note(each) for each in told]

    async def _note(self, told: Feedback) -> NoteAnswer:
        now = await self._db.now()
        for _ in range(_MOST_TRIES):
            async with self._db.transaction() as session:
                answer, has_work = await _noted(session, told, now)
            if has_work:
                await self._wake.tell()
            if answer is not None:
                return answer
        raise StoreUnavailable("The message changes faster than it can be stored: try again")


async def _noted(session: Session, told: Feedback, now: int) -> tuple[NoteAnswer | None, bool]:
    """The answer, None if somebody changed the message meanwhile; True if there may be work now."""
    held = (await load(session, [told.message])).get(told.message)
    known = await _known(session, told.message)
    if known is None or held is None or held.entry is None:
        return NoteAnswer.UNKNOWN, False
    carriers, events = known
    answer, change = lifecycle.note(
        held.entry, told, known=events, carriers=carriers, at=in_ms(told.at), now=now
    )
    if change is None:
        return answer, False
    tenant = held.entry.tenant
    consequences = told_of(tenant, suppressions(told), now)
    if consequences:  # held before the message, as by whoever erases it: nobody waits in a circle
        await session.value("tenant_lock", tenant=tenant)
    changes = Changes(now)
    changes.apply(held, change)
    stored, has_work = await changes.save(session)
    if not stored:
        return None, False
    if consequences:
        await put(session, tenant, consequences)
    return answer, has_work


async def _known(session: Session, message: MessageId) -> tuple[set[str], set[str]] | None:
    """Who carried it, and the ids of what was told of it; None if the message is not known, or was erased.

    Read after the entry: what is noted meanwhile is either seen here, or changes the entry and is found out.
    """
    row = await session.first("track_known", [message])
    return None if row is None or row[1] is None else (set(row[2]), set(row[3]))
