"""A process killed -9 at every named point: after a restart the law of delivery holds."""

import signal
from pathlib import Path

import pytest

from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, prepared
from end_to_end.crash.law import broken
from end_to_end.crash.points import POINTS, Plan

# What happens more than once in a life is also hit in the midst of it.
_AGAIN = (
    "claim.committed",
    "declare.committed",
    "keep.committed",
    "settle.committed",
    "settle.half",
)
_PLANS = [*(Plan(point) for point in POINTS), *(Plan(point, occurrence=4) for point in _AGAIN)]


@pytest.mark.parametrize("plan", _PLANS, ids=lambda plan: f"{plan.point}-{plan.occurrence}")
def test_a_process_killed_at_a_named_point_loses_nothing(tmp_path: Path, plan: Plan) -> None:
    """Whatever step a process dies before, the next one finds all that was accepted and ends it, once."""
    file = tmp_path / "post.db"
    seed = POINTS.index(plan.point)
    accepted = prepared(file, seed)

    with child(Orders(str(file), plan, seed, lingering_s=600.0, grace_s=0.1)) as victim:
        code = victim.wait_for_end()
    bring_to_rest(file)

    assert code == -signal.SIGKILL, "the point was never reached"
    assert broken(file, [*accepted, *victim.accepted]) == []
