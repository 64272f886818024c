"""Place of a store's jobs, in it or in a separate queue: when it changes, jobs are rebuilt from the ledger.

A Postgres database that was restored into another server keeps its jobs, but no longer knows whose turn it is.
"""

from carteiro.errors import QueueElsewhere
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.ports.ledger import QUEUE, RELAY
from carteiro.stores.sql.session import Database, Session

_ELSEWHERE = '"elsewhere"'


async def keep_jobs(db: Database, *, here: bool) -> None:
    """Give every unfinished message a job here; or delete all jobs, for a queue elsewhere has them."""
    now = await db.now()
    if any(await _found(db, now, here=here)):
        await db.write(lambda session: _keep(session, now, here=here))


async def _keep(session: Session, now: int, *, here: bool) -> None:
    await session.fetch("lock_ring")
    # Looked at again under the lock: another process may be faster.
    changes_hands, is_restored = await _found(session, now, here=here)
    if changes_hands:
        await session.run("clear_jobs")
        if here:
            await session.run("restore_jobs", now=now, longest=LONGEST_HOLD_MS)
            await session.run("override_drop", name=QUEUE)
        else:
            await session.run("override_set", name=QUEUE, setting=_ELSEWHERE)
    if changes_hands or is_restored:
        await session.run("rebuild_ring", now=now)


async def _found(session: Session, now: int, *, here: bool) -> tuple[bool, bool]:
    """Return whether the place of the jobs changes, and whether the ring is another server's."""
    is_elsewhere, is_restored, is_relayed = await session.first(
        "keeping", mark=QUEUE, lead=RELAY, now=now
    )
    if here and is_elsewhere and is_relayed:
        raise QueueElsewhere("this store")
    return bool(is_elsewhere) is here, bool(is_restored)
