"""Where the jobs of a database are kept, in it or elsewhere: what changes hands is made again from the ledger.

A database that was restored into another server keeps its jobs, but no longer knows whose turn it is.
"""

from carteiro.errors import QueueElsewhere
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.ports.ledger import RELAY
from carteiro.stores.postgres.database import Database, Session

_MARK = "queue"
_ELSEWHERE = '"elsewhere"'


async def keep_jobs(db: Database, *, here: bool) -> None:
    """Give every unfinished message a job here; or none any more, for a queue elsewhere has them."""
    now = await db.now()
    if not any(await _found(db, now, here=here)):
        return
    async with db.transaction() as session:
        await session.fetch("lock_ring")
        changes_hands, is_restored = await _found(session, now, here=here)
        if changes_hands:
            await _hand_over(session, now, here=here)
        if changes_hands or is_restored:
            await session.fetch("rebuild_ring", now)


async def _found(db: Database | Session, now: int, *, here: bool) -> tuple[bool, bool]:
    """Whether the jobs change hands, and whether the ring is another server's."""
    is_elsewhere, is_restored, is_relayed = await db.first("keeping", _MARK, RELAY, now)
    if here and is_elsewhere and is_relayed:
        raise QueueElsewhere("this database")
    return is_elsewhere is here, is_restored


async def _hand_over(session: Session, now: int, *, here: bool) -> None:
    await session.fetch("clear_jobs")
    if here:
        await session.fetch("restore_jobs", now, LONGEST_HOLD_MS)
        await session.run("override_drop", name=_MARK)
    else:
        await session.run("override_set", name=_MARK, setting=_ELSEWHERE)
