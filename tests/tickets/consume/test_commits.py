"""One worker of the lane on a log in memory: how far it reads ahead, and of what Redis is asked."""

import asyncio
from functools import partial

import pytest

from carteiro.tickets.consume.notes import Noted, note_down
from carteiro.tickets.consume.ports import Commit
from support.memory_lane import MemoryLane, ids
from support.ticket_log import TOPIC


async def test_only_records_of_the_last_owner_are_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as the last owner may have been ahead of his commit; what comes after is new to everybody."""
    monkeypatch.setattr("carteiro.tickets.consume.runner._READ_AHEAD", 150)
    lane = MemoryLane()
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1000)
    assert lane.counter.questions == 150 / 50


@pytest.mark.parametrize(("noted", "window"), [(500, 100), (200, 500)])
async def test_records_beyond_the_last_commit_are_looked_up(
    monkeypatch: pytest.MonkeyPatch, noted: int, window: int
) -> None:
    """The last owner had read so much further, and somebody killed it; its notes may not have had room for all."""
    monkeypatch.setattr("carteiro.tickets.consume.runner._READ_AHEAD", 100)
    monkeypatch.setattr("carteiro.tickets.consume.runner._OVERSHOOT", 0)
    lane = MemoryLane(window=window)
    for id in ids("t", 1000):
        lane.log.put(id)
    notes, _ = note_down(Noted(0, noted, {0: 0}))
    lane.log.commits[TOPIC, 0] = Commit((TOPIC, 0), 0, notes)
    lane.counter.ended_at = {f"t{at}": f"{TOPIC}|0|{at}" for at in (599, 600)}
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1000)
    assert "t599" not in lane.done
    assert "t600" in lane.done  # nobody can have been there
    assert len(lane.done) == 1000 - noted


async def test_of_a_partition_that_comes_back_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another had it meanwhile."""
    monkeypatch.setattr("carteiro.tickets.consume.runner._READ_AHEAD", 10)
    lane = MemoryLane()
    for id in ids("t", 100):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 100)
        await lane.log.revoke((TOPIC, 0))
        lane.log.put("bad", fails=9)
        lane.counter.failures["bad"] = 2
        await lane.log.give((TOPIC, 0))
        await lane.until(lambda: lane.log.committed == 101)
    assert lane.runs[-1] == ("bad", 3)


async def test_worker_without_commits_stops_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next owner asks what is known of just that many."""
    monkeypatch.setattr("carteiro.tickets.consume.commits.MOST_UNNOTED", 200)
    lane = MemoryLane()
    lane.log.refuses_commits = True
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: bool(lane.log.paused))
        await asyncio.sleep(0.05)
        assert len(lane.done) <= 300
        lane.log.refuses_commits = False
        await lane.until(lambda: lane.log.committed == 1000)


async def test_number_of_unfinished_tickets_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However small they are: each costs memory."""
    monkeypatch.setattr("carteiro.tickets.consume.commits._MOST_UNFINISHED", 200)
    lane = MemoryLane(concurrency=1)
    lane.gates["t0"] = asyncio.Event()
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working() as runner:
        await lane.until(lambda: bool(lane.log.paused))
        await asyncio.sleep(0.02)
        [partition] = runner._partitions.values()
        assert partition.offsets.unfinished <= 250
        lane.gates["t0"].set()
        await lane.until(lambda: lane.log.committed == 1000)


async def test_worker_with_nothing_new_to_commit_continues_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that comes is known to be done by the notes, and one that was not is still in flight."""
    monkeypatch.setattr("carteiro.tickets.consume.commits.MOST_UNNOTED", 100)
    lane = MemoryLane()
    lane.gates["t0"] = asyncio.Event()
    for id in ids("t", 50):
        lane.log.put(id)
    notes, _ = note_down(Noted(0, 500, {0: 0}))
    lane.log.commits[TOPIC, 0] = Commit((TOPIC, 0), 0, notes)
    async with lane.working():
        await lane.until(lambda: bool(lane.log.history))
        for at in range(50, 500):
            lane.log.put(f"t{at}")
        await asyncio.sleep(0.1)  # several looks at what is to be committed
        for at in range(500, 600):  # a whole batch waits behind the one that is in flight
            lane.log.put(f"t{at}", key="t0" if at < 550 else None)
        await lane.until(lambda: len(lane.done) == 50)
        lane.gates["t0"].set()
        await lane.until(lambda: lane.log.committed == 600)


async def test_the_last_tickets_are_committed_soon_after_others() -> None:
    """However long commits may wait while more comes: a worker without work has nothing left to commit."""
    lane = MemoryLane(commit_every_ms=60_000)
    async with lane.working():
        # Each is done before the next one comes, all of them within a moment.
        for id in ids("t", 20):
            lane.log.put(id)
            await lane.until(partial(lane.done.__contains__, id))
        await lane.until(lambda: lane.log.committed == 20)
