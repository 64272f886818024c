"""Claimed and undeclared jobs of a dead worker come back unchanged."""

import signal

import pytest

from carteiro.model import State
from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, sent
from end_to_end.crash.law import broken, lives
from end_to_end.crash.places import Place
from end_to_end.crash.points import Plan
from end_to_end.crash.traffic import an_email

_SLOTS = 200


@pytest.mark.parametrize("place", ["sqlite", "postgres", "redis+sqlite"], indirect=True)
def test_two_hundred_claimed_and_undeclared_jobs_come_back_uncharged(place: Place) -> None:
    """Killing a worker that holds 200 claimed, undeclared jobs leaves none in doubt and charges none."""
    accepted = sent(place, [an_email("ok") for _ in range(_SLOTS + 50)])
    full = Plan("claim.answered")

    with child(Orders(place, full, emails_only=True, blocked="declare")) as victim:
        code = victim.wait_for_end()
    claimed = place.leased()
    bring_to_rest(place, as_usual=True)  # this number at once may take longer than a short hold

    assert code == -signal.SIGKILL
    assert claimed == _SLOTS
    assert {(life.state, life.attempts, life.doubts == []) for life in lives(place)} == {
        (State.SENT, 1, True)
    }
    assert all(len(life.deliveries) == 1 for life in lives(place))
    assert _charged(place) == 0
    assert broken(place, accepted) == []


def _charged(place: Place) -> int:
    [(charged,)] = place.rows(f"SELECT sum(charged) FROM {place.words.ledger}")
    return int(charged)
