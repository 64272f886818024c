"""A handler that takes no notice when it is cancelled: the process ends all the same, and says why."""

import asyncio

from end_to_end.tickets.lane import Lane
from support.services import PATIENCE
from support.ticket_topic import until


def test_a_handler_that_never_ends_keeps_no_process(lane: Lane) -> None:
    """What it was at is not committed, and is read again."""
    lane.put("deaf", deaf=True)
    with lane.working() as worker:
        asyncio.run(until(lambda: bool(lane.executions()), every_s=0.05))
        worker.terminate()
        worker.join(PATIENCE)
        assert worker.exitcode == 1
    assert "handlers_go_on" in lane.log.read_text("utf-8")
    assert max(lane.topic.committed()) <= 0
