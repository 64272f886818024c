"""A process killed -9 at every named point: after a restart the law of delivery holds."""

import signal

import pytest

from end_to_end.crash.cases import cases
from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, prepared
from end_to_end.crash.law import broken
from end_to_end.crash.places import Place
from end_to_end.crash.points import OPERATIONS, POINTS, Plan

# What happens more than once in a life is also hit in the midst of it.
_AGAIN = (
    "claim.committed",
    "declare.committed",
    "keep.committed",
    "settle.committed",
    "settle.half",
)
_PLANS = [*(Plan(point) for point in POINTS), *(Plan(point, occurrence=4) for point in _AGAIN)]
# A server does an operation in one step of its own: what a process can be killed in is around its commit.
_ON_A_SERVER = [
    *(Plan(f"{each}.{step}") for each in OPERATIONS for step in ("uncommitted", "committed")),
    *(Plan(point) for point in ("redrive.half", "handover.begun")),
    *(Plan(f"{each}.committed", occurrence=4) for each in ("claim", "settle")),
]


@pytest.mark.parametrize(
    ("place", "plan"), cases(sqlite=_PLANS, postgres=_ON_A_SERVER), indirect=["place"]
)
def test_a_process_killed_at_a_named_point_loses_nothing(place: Place, plan: Plan) -> None:
    """Whatever step a process dies before, the next one finds all that was accepted and ends it, once."""
    seed = POINTS.index(plan.point)
    accepted = prepared(place, seed)

    with child(Orders(place, plan, seed, lingering_s=600.0, grace_s=0.1)) as victim:
        code = victim.wait_for_end()
    bring_to_rest(place)

    assert code == -signal.SIGKILL, "the point was never reached"
    assert broken(place, [*accepted, *victim.accepted]) == []
