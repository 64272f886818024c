"""A message that kills its worker: in the end it is not run any more, and the others go on."""

from collections.abc import Sequence

import pytest

from carteiro.model import DeadReason, MessageId, State
from end_to_end.crash.cases import cases
from end_to_end.crash.child import DEADLY_EXIT, DEATH, Orders
from end_to_end.crash.children import bring_to_rest, child, sent, sent_tasks
from end_to_end.crash.law import broken, lives
from end_to_end.crash.places import Place
from end_to_end.crash.traffic import an_email

_CLAIMS = 5
_TOGETHER = 2  # claims before it is suspected
_OTHERS = 10  # of each kind


@pytest.mark.parametrize(
    ("place", "how"), cases(sqlite=["task", "email"], postgres=["email"]), indirect=["place"]
)
def test_message_that_kills_its_worker_is_given_up_and_the_others_go_on(
    place: Place, how: str
) -> None:
    """After five claims without an end it is a dead letter; from the third on it runs alone."""
    deadly = _deadly(place, how)
    others = [
        *sent(place, [an_email("ok") for _ in range(_OTHERS)]),
        *sent_tasks(place, ["linger"] * _OTHERS),
    ]

    codes = _run_until_idle(place)
    bring_to_rest(place)

    assert codes == [DEADLY_EXIT] * _CLAIMS + [0]
    assert _reason(place, deadly) == DeadReason.CRASHES_WORKER
    assert {life.state for life in lives(place) if life.id != deadly} == {State.SENT}
    assert _beside_each_death(place)[_TOGETHER:] == [0] * (_CLAIMS - _TOGETHER)
    assert broken(place, [deadly, *others]) == []


def _deadly(place: Place, how: str) -> MessageId:
    if how == "task":
        [message] = sent_tasks(place, ["deadly"])
    else:
        [message] = sent(place, [an_email("deadly")])
    return message


def _run_until_idle(place: Place) -> Sequence[int]:
    """Start a worker repeatedly, until one survives to the end of the work."""
    codes: list[int] = []
    while 0 not in codes and len(codes) < 2 * _CLAIMS:
        with child(Orders(place, until_idle=True, lingering_s=0.05)) as worker:
            codes.append(worker.wait_for_end())
    return codes


def _reason(place: Place, message: MessageId) -> str:
    [(reason,)] = place.rows(f"SELECT reason FROM dead_letters WHERE message_id = '{message}'")
    return str(reason)


def _beside_each_death(place: Place) -> list[int]:
    """The number of deliveries that died with each death, in their order."""
    marks = [line.split()[0] for line in place.marks.read_text().splitlines()]
    return [int(mark.partition(":")[2]) for mark in marks if mark.startswith(DEATH)]
