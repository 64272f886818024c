"""The law itself: it holds where nothing happened, and finds each violation."""

import pytest

from end_to_end.crash.children import bring_to_rest, sent, sent_tasks
from end_to_end.crash.law import broken
from end_to_end.crash.places import PREFIX, Place
from end_to_end.crash.traffic import an_email

_SENT = "FROM messages WHERE to_address LIKE 'ok@%'"
_DEAD = "FROM messages WHERE to_address LIKE 'reject@%'"
_OF_SENT = f"WHERE {{entry_no}} = (SELECT no {_SENT})"
_OF_DEAD = f"WHERE {{entry_no}} = (SELECT no {_DEAD})"
_COPIES = "message_id, tenant, to_address, subject, content, provider_message_id, created_at"

_A_REDRIVE = (
    "INSERT INTO redrives SELECT 'r', '', '{}', 'job 1', 'finished', NULL, '{}', '{\"redriven\": 1}',"
    " 1, 1, 1, 1, true, NULL"
)

_BREACHES = {
    "ended: a message is gone": ("ended", f"DELETE {_SENT}"),
    "ended: a message rests": (
        "ended",
        f"UPDATE {{entries}} SET state = 'RECEIVED' {_OF_SENT}",
    ),
    "ended: a hold is left": (
        "ended",
        f"UPDATE {{entries}} SET held_until = 1 {_OF_SENT}",
    ),
    "delivered: nothing was": ("delivered", "DELETE FROM inbox"),
    "doubted: twice without a doubt": (
        "doubted",
        f"INSERT INTO inbox ({_COPIES}) SELECT {_COPIES} FROM inbox",
    ),
    "doubted: dead and delivered": (
        "doubted",
        f"UPDATE inbox SET message_id = (SELECT id {_DEAD})",
    ),
    "walked: a step is left out": ("walked", "{a_step_less}"),
    "walked: ends twice": ("walked", f"{{a_second_end}} {_SENT}"),
    "counted: a doubt too many": (
        "counted",
        f"UPDATE {{entries}} SET in_doubt = 1 {_OF_SENT}",
    ),
    "counted: an attempt too many": ("counted", "UPDATE {entries} SET attempts = attempts + 1"),
    "buried: no dead letter": ("buried", "DELETE FROM dead_letters"),
    "buried: a letter of the living": (
        "buried",
        f"UPDATE {{entries}} SET state = 'SENT' {_OF_DEAD}",
    ),
    "redriven: not counted": ("redriven", "{a_redrive}"),
    "figured: notes are gone": ("figured", "DELETE FROM rollup_notes"),
    "announced: a notice is lost": (
        "announced",
        "INSERT INTO alerts SELECT 'Lost', '', '', 'firing', 1, 1, 1, 1, 1, 'firing', 1, ''",
    ),
    "announced: nothing fired": (
        "announced",
        """INSERT INTO notices SELECT 'n', '', '', 1, 1, 0, '', '{{"alert": "Never"}}'""",
    ),
    "grouped: notes are gone": ("grouped", "DELETE FROM rollup_notes"),
    "clean: a job": ("clean", f"{{a_job}} {_SENT}"),
    "clean: a slot": ("clean", "UPDATE seats SET jobs = jobs + 1"),
}


def test_law_holds_where_nothing_happened(place: Place) -> None:
    """An undisturbed worker breaks no rule."""
    accepted = [*sent(place, [an_email("ok"), an_email("reject")]), *sent_tasks(place, ["note"])]

    bring_to_rest(place)

    assert broken(place, accepted) == []


@pytest.mark.parametrize(("rule", "breach"), _BREACHES.values(), ids=_BREACHES)
def test_law_finds_each_violation(place: Place, rule: str, breach: str) -> None:
    """A law that never complains proves nothing."""
    accepted = sent(place, [an_email("ok"), an_email("reject")])
    bring_to_rest(place)

    place.change(breach.format(a_redrive=_A_REDRIVE, **vars(place.words)))

    assert any(fault.startswith(f"{rule}: ") for fault in broken(place, accepted))


@pytest.mark.parametrize("place", ["redis+sqlite"], indirect=True)
def test_law_finds_a_job_left_in_the_queue(place: Place) -> None:
    """With a ledger in order."""
    accepted = sent(place, [an_email("ok")])
    bring_to_rest(place)
    before = broken(place, accepted)

    with place.redis() as client:
        client.hset(f"{PREFIX}:jobs", accepted[0], "a job")
        client.zadd(f"{PREFIX}:leased:email:send\tacme", {accepted[0]: 1})

    assert before == []
    assert [fault.partition(":")[0] for fault in broken(place, accepted)] == ["clean", "clean"]


def test_law_finds_a_task_that_never_ran(place: Place) -> None:
    """A task is delivered when it has left its mark."""
    accepted = sent_tasks(place, ["note"])
    bring_to_rest(place)

    place.marks.unlink()

    assert any(fault.startswith("delivered") for fault in broken(place, accepted))
