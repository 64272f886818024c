"""One worker of the lane on a log in memory: how far it reads ahead, and of what Redis is asked."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from carteiro.tickets.consume.notes import Noted, note_down
from carteiro.tickets.consume.ports import Commit, TicketStanding
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


@pytest.mark.parametrize(("up_to", "questions"), [(0, 0), (60, 2), (400, 3)])
async def test_records_beyond_all_that_were_counted_are_not_looked_up(
    monkeypatch: pytest.MonkeyPatch, up_to: int, questions: int
) -> None:
    """Where nothing ever failed nothing is asked."""
    monkeypatch.setattr("carteiro.tickets.consume.runner._READ_AHEAD", 150)
    lane = MemoryLane()
    lane.counter.up_to = {(TOPIC, 0): up_to} if up_to else {}
    for id in ids("t", 1000):
        lane.log.put(id)
    lane.counter.ended_at = {f"t{at}": f"{TOPIC}|0|{at}" for at in (59, 60)}
    lane.log.commits[TOPIC, 0] = Commit((TOPIC, 0), 0, "")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1000)
    assert lane.counter.questions == questions
    assert ("t59" in lane.done, "t60" in lane.done) == (up_to < 60, up_to < 61)


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


async def test_a_commit_of_many_records_does_not_delay_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small ones are rare, so that a trickle of tickets costs little; after a large one the next would only be late."""
    for name in ("_SHORTEST_PAUSE_S", "_MOMENT_S"):
        monkeypatch.setattr(f"carteiro.tickets.consume.commits.{name}", 60.0)
    monkeypatch.setattr("carteiro.tickets.consume.commits.MOST_UNNOTED", 200)
    monkeypatch.setattr("carteiro.tickets.consume.commits._FEW", 100)
    lane = MemoryLane(commit_every_ms=60_000)
    for id in ids("t", 1000):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: len(lane.done) == 1000)


async def test_next_list_comes_while_the_counter_is_asked_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list after it does not, and a key keeps its order, whichever answer comes first."""
    lane = MemoryLane(concurrency=1)
    lane.log.most_at_once = 1
    answers: dict[str, asyncio.Event] = {id: asyncio.Event() for id in ids("t", 3)}
    asked: list[str] = []
    look = lane.counter.look

    async def look_slowly(names: Sequence[str]) -> list[TicketStanding]:
        asked.extend(names)
        await answers[names[0]].wait()
        return await look(names)

    monkeypatch.setattr(lane.counter, "look", look_slowly)
    for id in ids("t", 3):
        lane.log.put(id, key="one")
    async with lane.working():
        await lane.until(lambda: len(asked) == 2)
        answers["t1"].set()
        await asyncio.sleep(0.02)
        assert (asked, lane.done) == (["t0", "t1"], [])
        answers["t0"].set()
        answers["t2"].set()
        await lane.until(lambda: lane.log.committed == 3)
    assert lane.done == ["t0", "t1", "t2"]


async def test_worker_ends_with_the_error_of_a_list_that_cannot_be_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bug of ours must be seen, also if no list comes after it."""
    lane = MemoryLane()

    async def fail(_: Sequence[str]) -> list[TicketStanding]:
        raise LookupError("ours")

    monkeypatch.setattr(lane.counter, "look", fail)
    lane.log.put("t0")
    async with asyncio.timeout(10):
        with pytest.raises(LookupError, match="ours"):
            await lane.runner().run()


async def test_partition_that_is_lost_while_the_counter_is_asked_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its tickets are another's by the time of the answer."""
    lane = MemoryLane()
    answer = asyncio.Event()
    is_asked = asyncio.Event()

    async def look_slowly(names: Sequence[str]) -> list[TicketStanding]:
        is_asked.set()
        await answer.wait()
        return [TicketStanding(0, "") for _ in names]

    monkeypatch.setattr(lane.counter, "look", look_slowly)
    lane.log.put("t0")
    async with lane.working():
        await is_asked.wait()
        await lane.log.lose((TOPIC, 0))
        answer.set()
    assert (lane.runs, lane.log.history) == ([], [])
