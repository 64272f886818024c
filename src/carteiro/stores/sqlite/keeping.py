"""Where the jobs of a file are kept, in it or elsewhere: what changes hands is made again from the ledger."""

import sqlite3

from carteiro.errors import QueueElsewhere
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.ports.ledger import RELAY
from carteiro.stores.sqlite.rows import run

_MARK = "queue"
_ELSEWHERE = '"elsewhere"'


def are_jobs_elsewhere(db: sqlite3.Connection) -> bool:
    """Whether a queue elsewhere has the jobs."""
    return run(db, "override_get", name=_MARK).fetchone() is not None


def changes_hands(db: sqlite3.Connection, *, here: bool) -> bool:
    """Whether the jobs were kept elsewhere until now and are to be kept here, or the other way round."""
    return are_jobs_elsewhere(db) is here


def keep_jobs(db: sqlite3.Connection, now: int, *, here: bool) -> None:
    """Give every unfinished message a job here; or none any more, for a queue elsewhere has them."""
    if not changes_hands(db, here=here):  # another process was faster
        return
    if here and run(db, "is_led", name=RELAY, now=now).fetchone() is not None:
        raise QueueElsewhere("this file")
    for operation in ("clear_ready", "clear_parked", "clear_seats"):
        run(db, operation)
    if not here:
        run(db, "override_set", name=_MARK, setting=_ELSEWHERE)
        return
    run(db, "restore_ready", now=now, longest=LONGEST_HOLD_MS)
    run(db, "restore_parked", now=now, longest=LONGEST_HOLD_MS)
    run(db, "restore_seats", now=now)
    run(db, "override_drop", name=_MARK)
