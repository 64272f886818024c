"""A worker of the ticket lane killed -9 between every two steps: the next one finishes each ticket."""

import signal

import pytest

from end_to_end.tickets.lane import Lane, broken
from end_to_end.tickets.points import POINTS, Plan
from support.services import PATIENCE

# A step that happens to several tickets is also hit at a later one: those that die at once come
# first.
_AGAIN = (
    ("handler.asked", 5),
    ("handler.fails", 3),
    ("handler.returns", 3),
    ("failed.answered", 3),
    ("publish.answered", 3),
    ("ended.answered", 3),
    ("commit.answered", 2),
)
_PLANS = [*map(Plan, POINTS), *(Plan(*each) for each in _AGAIN)]


@pytest.mark.parametrize("plan", _PLANS, ids=str)
def test_worker_killed_at_a_named_point_loses_nothing(lane: Lane, plan: Plan) -> None:
    """Each ticket is done or dead, with one execution more at most, and one dead letter under one name."""
    lane.put_some_of_each()
    if plan.point.startswith("look."):
        lane.let_all_be_looked_at()
    # The next one has the name of the first, and its partition at once.
    with lane.working(plan, group_instance_id="worker") as victim:
        victim.join(PATIENCE)
        assert victim.exitcode == -signal.SIGKILL

    lane.put("after")
    with lane.working(group_instance_id="worker") as worker:
        lane.wait_for_rest()
        worker.terminate()
        worker.join(PATIENCE)
        assert worker.exitcode == 0

    assert not broken(lane, disturbances=1)
    assert not lane.counters()
