"""A message that kills its worker: it is left alone in the end, and the others go on."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from carteiro.model import DeadReason, MessageId, State
from end_to_end.crash.child import DEADLY_EXIT, DEATH, Orders
from end_to_end.crash.children import bring_to_rest, child, sent, sent_tasks
from end_to_end.crash.law import broken, lives
from end_to_end.crash.post_office import marks_of
from end_to_end.crash.traffic import an_email

_CLAIMS = 5
_TOGETHER = 2  # claims before it is suspected


@pytest.mark.parametrize("how", ["task", "email"])
def test_a_message_that_kills_its_worker_is_left_alone_and_the_others_go_on(
    tmp_path: Path, how: str
) -> None:
    """After five claims without an end it is a dead letter; from the third on it runs alone."""
    file = tmp_path / "post.db"
    deadly = _deadly(file, how)
    others = [*sent(file, [an_email("ok") for _ in range(10)]), *sent_tasks(file, ["linger"] * 10)]

    codes = _run_until_idle(file)
    bring_to_rest(file)

    assert codes == [DEADLY_EXIT] * _CLAIMS + [0]
    assert _reason(file, deadly) == DeadReason.CRASHES_WORKER
    assert {life.state for life in lives(file) if life.id != deadly} == {State.SENT}
    assert _beside_each_death(file)[_TOGETHER:] == [0] * (_CLAIMS - _TOGETHER)
    assert broken(file, [deadly, *others]) == []


def _deadly(file: Path, how: str) -> MessageId:
    if how == "task":
        [message] = sent_tasks(file, ["deadly"])
    else:
        [message] = sent(file, [an_email("deadly")])
    return message


def _run_until_idle(file: Path) -> Sequence[int]:
    """Start a worker again and again, until one lives to see the end of the work."""
    codes: list[int] = []
    while 0 not in codes and len(codes) < 2 * _CLAIMS:
        with child(Orders(str(file), until_idle=True, lingering_s=0.05)) as worker:
            codes.append(worker.wait_for_end())
    return codes


def _reason(file: Path, message: MessageId) -> str:
    with closing(sqlite3.connect(file)) as db:
        asked = "SELECT reason FROM dead_letters WHERE message_id = ?"
        return str(db.execute(asked, (message,)).fetchone()[0])


def _beside_each_death(file: Path) -> list[int]:
    """How many deliveries each death took along, in their order."""
    marks = [line.split()[0] for line in marks_of(file).read_text().splitlines()]
    return [int(mark.partition(":")[2]) for mark in marks if mark.startswith(DEATH)]
