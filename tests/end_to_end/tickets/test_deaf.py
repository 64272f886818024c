"""A handler that ignores its cancellation: the process ends all the same, and says why."""

import asyncio

import httpx

from end_to_end.tickets.lane import Lane
from support.services import HOST, PATIENCE, free_port
from support.ticket_topic import until


def test_handler_that_never_ends_does_not_keep_its_process(lane: Lane) -> None:
    """Its ticket is not committed, and is read again; until then the process reports that it lives."""
    lane.put("deaf", deaf=True)
    lane.metrics_port = free_port()
    with lane.working() as worker:
        asyncio.run(until(lambda: bool(lane.executions()), every_s=0.05))
        worker.terminate()
        asyncio.run(until(lambda: "partitions_revoked" in lane.log.read_text("utf-8")))
        live = httpx.get(f"http://{HOST}:{lane.metrics_port}/health/live", trust_env=False)
        worker.join(PATIENCE)
        assert worker.exitcode == 1
    assert live.text == "live\n"
    assert "handlers_go_on" in lane.log.read_text("utf-8")
    assert max(lane.topic.committed()) <= 0
