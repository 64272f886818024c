"""A process that is stopped past its lease or hold and continues (SIGSTOP, SIGCONT): it is fenced."""

import signal
import time

import pytest

from carteiro.model import State
from end_to_end.crash.cases import cases
from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, sent
from end_to_end.crash.law import Life, broken, lives
from end_to_end.crash.places import Place
from end_to_end.crash.points import Plan
from end_to_end.crash.post_office import HOLD, LEASE
from end_to_end.crash.traffic import an_email

_EMAILS = [*(an_email("ok") for _ in range(3)), an_email("ok", delivery="at_most_once")]

BEFORE_THE_LAST_CHECK = (
    "claim.asked",
    "claim.committed",
    "claim.answered",
    "confirm.asked",
    "confirm.answered",
    "declare.asked",
    "declare.committed",
    "declare.answered",
    "deliver.asked",
    "handover.asked",
)
DECLARED = BEFORE_THE_LAST_CHECK[BEFORE_THE_LAST_CHECK.index("declare.committed") :]
INSIDE_THE_HANDOVER = ("handover.begun", "keep.asked", "keep.committed", "keep.answered")
WITH_THE_ANSWER_IN_HAND = ("deliver.answered", "settle.asked")
WITH_THE_LOCK = ("claim.uncommitted", "declare.half", "declare.uncommitted")


def _slept_through(place: Place, point: str) -> tuple[list[Life], list[Life]]:
    """Stop a worker at the point, let another one end everything, continue it: the messages before and after."""
    accepted = sent(place, _EMAILS)
    with child(Orders(place, Plan(point, action="stop"), until_idle=True)) as sleeper:
        sleeper.wait_for_stop()
        bring_to_rest(place, as_usual=True)
        before = lives(place)
        sleeper.tell(signal.SIGCONT)
        assert sleeper.wait_for_end() == 0
    assert broken(place, accepted) == []
    return before, lives(place)


@pytest.mark.parametrize(
    ("place", "point"),
    cases(
        sqlite=BEFORE_THE_LAST_CHECK,
        postgres=("claim.committed", "declare.committed", "handover.asked"),
        redis_sqlite=("claim.answered",),
        redis_postgres=("declare.committed",),
    ),
    indirect=["place"],
)
def test_worker_stopped_before_the_last_deadline_check_delivers_nothing(
    place: Place, point: str
) -> None:
    """Reassigned jobs are not handed over when it continues; only its declared ones are in doubt."""
    before, after = _slept_through(place, point)

    assert [life.deliveries for life in after] == [life.deliveries for life in before]
    assert all(len(life.deliveries) <= 1 for life in after)
    assert any(life.doubts for life in before) == (point in DECLARED)
    assert all(life.state is State.SENT for life in before if life.delivery == "at_least_once")


@pytest.mark.parametrize(
    ("place", "point"),
    cases(sqlite=INSIDE_THE_HANDOVER, postgres=("handover.begun", "keep.committed")),
    indirect=["place"],
)
def test_worker_stopped_inside_the_hand_over_delivers_at_most_once_more(
    place: Place, point: str
) -> None:
    """Its second delivery is covered by the doubt that was recorded at the reassignment."""
    before, after = _slept_through(place, point)

    assert any(life.doubts for life in before)
    for life in after:
        assert len(life.deliveries) <= 1 + len(life.doubts)
        assert len(life.doubts) <= 1


@pytest.mark.parametrize(
    ("place", "point"),
    cases(
        sqlite=WITH_THE_ANSWER_IN_HAND, postgres=("settle.asked",), redis_sqlite=("settle.asked",)
    ),
    indirect=["place"],
)
def test_late_success_is_kept_as_evidence(place: Place, point: str) -> None:
    """The late result of a worker is kept, and makes a message SENT that was given up in doubt."""
    before, after = _slept_through(place, point)

    given_up = [life.id for life in before if life.state is State.FAILED]
    late = {life.id for life in after if "LATE_RESULT" in {name for name, _ in life.events}}
    assert given_up
    assert late.issuperset(given_up)
    assert all(life.state is State.SENT for life in after)


@pytest.mark.parametrize(
    ("place", "point"),
    cases(sqlite=WITH_THE_LOCK, postgres=("claim.uncommitted", "declare.uncommitted")),
    indirect=["place"],
)
def test_worker_stopped_inside_a_transaction_goes_on_where_it_was(place: Place, point: str) -> None:
    """No other can take over from a worker that holds the lock: it continues too late to call, and delivers later."""
    accepted = sent(place, _EMAILS)

    with child(Orders(place, Plan(point, action="stop"), until_idle=True)) as sleeper:
        sleeper.wait_for_stop()
        time.sleep(max(HOLD, LEASE).total_seconds() * 1.5)  # real time has to pass it by
        sleeper.tell(signal.SIGCONT)
        code = sleeper.wait_for_end()

    assert code == 0
    assert all(len(life.deliveries) <= 1 for life in lives(place))
    assert broken(place, accepted) == []
