"""The law itself: it holds on a file that nothing happened to, and finds each way to break it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from end_to_end.crash.children import bring_to_rest, sent, sent_tasks
from end_to_end.crash.law import broken
from end_to_end.crash.post_office import marks_of
from end_to_end.crash.traffic import an_email

_SENT = "(SELECT id FROM messages WHERE to_address LIKE 'ok@%')"
_DEAD = "(SELECT id FROM messages WHERE to_address LIKE 'reject@%')"
_COPIES = "message_id, tenant, to_address, subject, content, provider_message_id, created_at"

_BREACHES = {
    "ended: a message is gone": ("ended", f"DELETE FROM messages WHERE id = {_SENT}"),
    "ended: a message rests": (
        "ended",
        f"UPDATE messages SET state = 'RECEIVED' WHERE id = {_SENT}",
    ),
    "ended: a hold is left": ("ended", f"UPDATE messages SET held_until = 1 WHERE id = {_SENT}"),
    "delivered: nothing was": ("delivered", "DELETE FROM inbox"),
    "doubted: twice without a doubt": (
        "doubted",
        f"INSERT INTO inbox ({_COPIES}) SELECT {_COPIES} FROM inbox",
    ),
    "doubted: dead and delivered": (
        "doubted",
        f"UPDATE inbox SET message_id = {_DEAD}",
    ),
    "walked: a step is left out": ("walked", "DELETE FROM events WHERE type = 'SENT_ATTEMPT'"),
    "walked: ends twice": (
        "walked",
        f"INSERT INTO events VALUES (NULL, {_SENT}, 'SENT', '{{}}', 1)",
    ),
    "counted: a doubt too many": (
        "counted",
        f"UPDATE messages SET in_doubt = 1 WHERE id = {_SENT}",
    ),
    "counted: an attempt too many": ("counted", "UPDATE messages SET attempts = attempts + 1"),
    "buried: no dead letter": ("buried", "DELETE FROM dead_letters"),
    "buried: a letter of the living": (
        "buried",
        f"UPDATE messages SET state = 'SENT' WHERE id = {_DEAD}",
    ),
    "clean: a job": (
        "clean",
        (
            "INSERT INTO ready (id, message_no, kind, tenant, priority, due_at)"
            " VALUES (1, 2, 3, 4, 5, 6)"
        ),
    ),
    "clean: a slot": ("clean", "UPDATE seats SET jobs = 1"),
}


def test_the_law_holds_where_nothing_happened(tmp_path: Path) -> None:
    """A worker that nobody kills leaves nothing to complain about."""
    file = tmp_path / "post.db"
    accepted = [*sent(file, [an_email("ok"), an_email("reject")]), *sent_tasks(file, ["note"])]

    bring_to_rest(file)

    assert broken(file, accepted) == []


@pytest.mark.parametrize(("rule", "breach"), _BREACHES.values(), ids=_BREACHES)
def test_the_law_finds_each_way_to_break_it(tmp_path: Path, rule: str, breach: str) -> None:
    """A law that never complains proves nothing."""
    file = tmp_path / "post.db"
    accepted = sent(file, [an_email("ok"), an_email("reject")])
    bring_to_rest(file)

    with closing(sqlite3.connect(file)) as db, db:
        db.execute(breach)

    assert any(fault.startswith(f"{rule}: ") for fault in broken(file, accepted))


def test_the_law_finds_a_task_that_never_ran(tmp_path: Path) -> None:
    """A task is delivered when it has left its mark."""
    file = tmp_path / "post.db"
    accepted = sent_tasks(file, ["note"])
    bring_to_rest(file)

    marks_of(file).unlink()

    assert any(fault.startswith("delivered") for fault in broken(file, accepted))
