"""A process killed -9 at every named point: after a restart the law of delivery holds."""

import signal

import pytest

from end_to_end.crash.cases import cases
from end_to_end.crash.child import Orders
from end_to_end.crash.children import bring_to_rest, child, prepared
from end_to_end.crash.law import broken
from end_to_end.crash.places import Place
from end_to_end.crash.points import OPERATIONS, POINTS, QUEUE_POINTS, Plan

# A step that happens more than once in a life is also hit at a later occurrence.
_AGAIN = (
    "claim.committed",
    "declare.committed",
    "keep.committed",
    "settle.committed",
    "settle.half",
)
_PLANS = [*(Plan(point) for point in POINTS), *(Plan(point, occurrence=4) for point in _AGAIN)]
# A server does an operation in one step of its own: a process can be killed around its commit.
_ON_A_SERVER = [
    *(Plan(f"{each}.{step}") for each in OPERATIONS for step in ("uncommitted", "committed")),
    *(Plan(point) for point in ("redrive.half", "handover.begun")),
    *(Plan(f"{each}.committed", occurrence=4) for each in ("claim", "settle")),
]
# A separate queue is called after the commit: a dead process leaves a difference between the two.
_IN_ONE_ALONE = [
    Plan(point)
    for point in (
        "accept.committed",
        "queue.extend.answered",  # held in the queue, declared nowhere
        "settle.committed",
        "queue.settle.asked",
        "redrive.committed",
        "send.committed",
    )
]
_BETWEEN_THE_TWO = [
    *_IN_ONE_ALONE,
    *(Plan(f"{each}.committed") for each in ("declare", "cancel", "expire")),
    Plan("queue.claim.answered"),  # leased, and not yet inspected
    Plan("queue.settle.answered", occurrence=4),
]


@pytest.mark.parametrize(
    ("place", "plan"),
    cases(
        sqlite=_PLANS,
        postgres=_ON_A_SERVER,
        redis_sqlite=_IN_ONE_ALONE,
        redis_postgres=_BETWEEN_THE_TWO,
    ),
    indirect=["place"],
)
def test_process_killed_at_a_named_point_loses_nothing(place: Place, plan: Plan) -> None:
    """After a death before any step, the next process finds all accepted messages and ends each once."""
    seed = [*POINTS, *QUEUE_POINTS].index(plan.point)
    accepted = prepared(place, seed)

    with child(Orders(place, plan, seed, lingering_s=600.0, grace_s=0.1)) as victim:
        code = victim.wait_for_end()
    bring_to_rest(place)

    assert code == -signal.SIGKILL, "the point was never reached"
    assert broken(place, [*accepted, *victim.accepted]) == []
