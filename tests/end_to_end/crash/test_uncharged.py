"""What a dead worker had claimed and not declared comes back as if nothing had happened."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from carteiro.model import State
from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, sent
from end_to_end.crash.law import broken, lives
from end_to_end.crash.points import Plan
from end_to_end.crash.traffic import an_email

_SLOTS = 200


def test_two_hundred_claimed_and_undeclared_jobs_come_back_uncharged(tmp_path: Path) -> None:
    """Killing a worker that holds 200 claimed, undeclared jobs leaves none in doubt and charges none."""
    file = tmp_path / "post.db"
    accepted = sent(file, [an_email("ok") for _ in range(_SLOTS + 50)])
    full = Plan("claim.answered")

    with child(Orders(str(file), full, emails_only=True, blocked="declare")) as victim:
        code = victim.wait_for_end()
    claimed = _claimed_jobs(file)
    bring_to_rest(file)

    assert code == -signal.SIGKILL
    assert claimed == _SLOTS
    assert {(life.state, life.attempts, life.doubts == []) for life in lives(file)} == {
        (State.SENT, 1, True)
    }
    assert all(len(life.deliveries) == 1 for life in lives(file))
    assert _charged(file) == 0
    assert broken(file, accepted) == []


def _claimed_jobs(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("SELECT count(*) FROM parked WHERE is_claimed").fetchone()[0])


def _charged(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("SELECT sum(charged) FROM messages").fetchone()[0])
