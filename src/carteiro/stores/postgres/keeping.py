"""Where the jobs of a database are kept, in it or elsewhere: what changes hands is made again from the ledger."""

from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.stores.postgres.database import Database, Session

_MARK = "queue"
_ELSEWHERE = '"elsewhere"'


async def keep_jobs(db: Database, *, here: bool) -> None:
    """Give every unfinished message a job here; or none any more, for a queue elsewhere has them."""
    if not await _changes_hands(db, here=here):
        return
    now = await db.now()
    async with db.transaction() as session:
        await session.fetch("lock_ring")
        if not await _changes_hands(session, here=here):  # another process was faster
            return
        await session.fetch("clear_jobs")
        if here:
            await session.fetch("restore_jobs", now, LONGEST_HOLD_MS)
            await session.fetch("override_drop", _MARK)
        else:
            await session.fetch("override_set", _MARK, _ELSEWHERE)
        await session.fetch("rebuild_ring", now)


async def _changes_hands(db: Database | Session, *, here: bool) -> bool:
    is_elsewhere = await db.value("override_get", _MARK) is not None
    return is_elsewhere is here
