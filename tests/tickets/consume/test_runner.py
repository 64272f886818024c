"""One worker of the lane on a log in memory: order, retries, dead letters, commits, rebalances, outages."""

import asyncio
from datetime import timedelta

import pytest

from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.consume.runner import Runner
from carteiro.tickets.dead_letters.envelope import REDRIVES
from carteiro.tickets.ticket import Ticket
from support.memory_lane import NEVER_AGAIN, TICKETS, MemoryLane, ids
from support.ticket_log import TOPIC


def held(runner: Runner) -> int:
    """The size in bytes."""
    return sum(each.bytes for each in runner._partitions.values())


async def test_every_ticket_is_run_once_and_committed() -> None:
    """The happy path; one question to the counter for many tickets."""
    lane = MemoryLane()
    for id in ids("t", 200):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 200)
    assert sorted(lane.done) == sorted(ids("t", 200))
    assert lane.log.commits[TOPIC, 0].notes == ""
    assert lane.counter.questions <= 200 / 50


async def test_tickets_of_a_key_run_in_order_and_never_together() -> None:
    """Others run alongside them."""
    lane = MemoryLane()
    for each in range(30):
        lane.log.put(f"a{each}", key="a", seconds=0.001)
        lane.log.put(f"b{each}", key="b")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 60)
    assert [id for id in lane.done if id.startswith("a")] == list(ids("a", 30))
    assert [id for id in lane.done if id.startswith("b")] == list(ids("b", 30))
    assert lane.most_under_way == 2


async def test_a_failing_ticket_is_tried_again_and_holds_up_its_key_alone() -> None:
    """All others go on, and are known to be done though nothing after it is committed."""
    lane = MemoryLane(retry=NEVER_AGAIN)
    lane.log.put("bad", key="k", fails=1)
    lane.log.put("behind", key="k")
    for id in ids("t", 100):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: len(lane.done) == 100)
        assert "behind" not in lane.done
    assert lane.log.committed == 0
    assert lane.counter.failures == {"bad": 1}


async def test_next_worker_runs_only_unfinished_tickets() -> None:
    """The notes of the last commit say what that is, and how often it failed."""
    lane = MemoryLane(retry=NEVER_AGAIN)
    lane.log.put("bad", fails=1)
    for id in ids("t", 100):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: len(lane.done) == 100)
    lane.counter.failures.clear()
    lane.runs.clear()
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 101)
    assert lane.runs == [("bad", 2)]


async def test_three_failures_make_a_dead_letter() -> None:
    """Then it is committed, its counter is gone, and its key goes on."""
    lane = MemoryLane()
    lane.log.put("bad", key="k", fails=9)
    lane.log.put("next", key="k")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)
    assert lane.runs == [("bad", 1), ("bad", 2), ("bad", 3), ("next", 1)]
    [death] = lane.dead_letters.deaths
    assert (death.ticket.id, death.reason, death.error_type, death.error, death.failures) == (
        "bad", "max_retries_exceeded", "ConnectionError", "away", 3,
    )  # fmt: skip
    assert lane.counter.failures == {}
    assert lane.counter.ended_at == {"bad": f"{TOPIC}|0|0"}


async def test_a_success_after_failures_forgets_them() -> None:
    """A ticket of the same name has all its attempts again."""
    lane = MemoryLane()
    lane.log.put("t", fails=2)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.done == ["t"]
    assert lane.counter.failures == {}
    assert lane.counter.ended_at == {"t": f"{TOPIC}|0|0"}  # so that no crash gives it three more
    assert not lane.dead_letters.deaths


@pytest.mark.parametrize(
    ("type_", "body", "reason"),
    [
        ("BUILD", b"not json", "undecodable"),
        ("BUILD", b"", "undecodable"),
        ("BUILD", b"[]", "undecodable"),
        ("BUILD", b'{"task_type":"BUILD"}', "undecodable"),
        ("BUILD", b'{"ticket_id":"x"}', "undecodable"),
        ("NOBODY", None, "unknown_task_type"),
    ],
)
async def test_ticket_without_a_handler_is_a_dead_letter_at_once(
    type_: str, body: bytes | None, reason: str
) -> None:
    """It is not tried at all."""
    lane = MemoryLane()
    lane.log.put("t", type_, body=body)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert [death.reason for death in lane.dead_letters.deaths] == [reason]
    assert lane.runs == []


async def test_a_permanent_error_is_not_tried_again() -> None:
    """The handler has said so."""
    lane = MemoryLane()
    lane.log.put("t", permanent=True)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.runs == [("t", 1)]
    assert lane.dead_letters.reasons == {"t": "permanent_error"}


async def test_a_handler_that_takes_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cancelled, and says Timeout in the end; its dead letter may take as long as it needs."""
    monkeypatch.setattr("carteiro.tickets.consume.dead_lettering._FIRST_PAUSE_S", 0.02)
    lane = MemoryLane()
    lane.dead_letters.fails = 2
    lane.gates["t"] = asyncio.Event()
    lane.log.put("t")
    async with lane.working(time_limit=timedelta(milliseconds=5)):
        await lane.until(lambda: lane.log.committed == 1)
    assert len(lane.runs) == 3
    assert lane.dead_letters.deaths[0].error_type == "Timeout"


async def test_a_type_keeps_within_its_concurrency() -> None:
    """However many could run."""
    lane = MemoryLane()
    for id in ids("t", 40):
        lane.log.put(id, seconds=0.001)
    async with lane.working(concurrency=3):
        await lane.until(lambda: lane.log.committed == 40)
    assert lane.most_under_way == 3


async def test_a_counted_ticket_is_buried_without_another_run() -> None:
    """Its worker died after the last failure, before the dead letter was safe."""
    lane = MemoryLane()
    lane.counter.failures["t"] = 3
    lane.log.put("t")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.runs == []
    assert lane.dead_letters.reasons == {"t": "max_retries_exceeded"}


async def test_a_buried_ticket_is_committed_without_another_run() -> None:
    """Its worker died after the counter was cleared, before the commit; another record of that name is run."""
    lane = MemoryLane()
    lane.counter.ended_at["t"] = f"{TOPIC}|0|0"
    lane.log.put("t")
    lane.log.put("t")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)
    assert lane.runs == [("t", 1)]
    assert not lane.dead_letters.deaths


async def test_without_the_counter_failures_are_counted_all_the_same() -> None:
    """Three runs, then a dead letter: never for ever, never at once."""
    lane = MemoryLane()
    lane.counter.away = True
    lane.log.put("bad", fails=9)
    lane.log.put("good")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)
    assert [id for id, _ in lane.runs].count("bad") == 3
    assert lane.done == ["good"]


async def test_a_dead_letter_that_cannot_be_published_is_tried_again_and_its_handler_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is committed or forgotten before it is safe; others go on."""
    monkeypatch.setattr("carteiro.tickets.consume.dead_lettering._FIRST_PAUSE_S", 0.001)
    lane = MemoryLane()
    lane.dead_letters.fails = 3
    seen: list[tuple[int, dict[str, int]]] = []
    lane.dead_letters.before = lambda _: seen.append(
        (lane.log.committed, dict(lane.counter.failures))
    )
    lane.log.put("bad", fails=9)
    lane.log.put("good")
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)
    assert [id for id, _ in lane.runs].count("bad") == 3
    assert len(lane.dead_letters.deaths) == 1
    assert seen == [(0, {"bad": 3})] * 4


async def test_with_dead_letters_switched_off_the_key_is_held() -> None:
    """It is never dropped, not even by the next worker; others go on."""
    lane = MemoryLane(dlq_enabled=False)
    lane.log.put("bad", key="k", fails=9)
    lane.log.put("behind", key="k")
    lane.log.put("good")
    for _ in range(2):
        async with lane.working():
            await lane.until(lambda: "good" in lane.done and len(lane.runs) == 4)
    assert lane.log.committed == 0
    assert lane.done == ["good"]
    assert not lane.dead_letters.deaths


async def test_held_ticket_is_reported_also_by_the_next_worker() -> None:
    """With what it died of."""
    lane = MemoryLane(dlq_enabled=False)
    lane.error = ValueError("password=hunter2 is wrong")
    lane.log.put("bad", fails=9)
    for _ in range(2):
        async with lane.working() as runner:
            await lane.until(lambda: len(runner.held) == 1)
            [held] = runner.held
            assert (held.id, held.type, held.error_type) == ("bad", "BUILD", "ValueError")
            assert "hunter2" not in held.error
    assert lane.news == 2
    assert len(lane.runs) == 3


async def test_a_released_ticket_keeps_its_real_error() -> None:
    """Not the error of the worker that finds it used up."""
    lane = MemoryLane(dlq_enabled=False)
    lane.error = ValueError("no such commit")
    lane.log.put("bad", fails=9)
    lane.log.put("never", permanent=True)
    async with lane.working() as runner:
        await lane.until(lambda: len(runner.held) == 2)

    lane.settings["dlq_enabled"] = True
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)

    found = {each.ticket.id: each for each in lane.dead_letters.deaths}
    assert len(lane.runs) == 4
    assert [
        (each.reason, each.error_type, each.error, each.failures)
        for each in (found["bad"], found["never"])
    ] == [
        ("max_retries_exceeded", "ValueError", "no such commit", 3),
        ("permanent_error", "Permanent", "never", 1),
    ]
    assert lane.counter.errors == {}


async def test_success_of_a_republished_ticket_is_reported_to_the_archive_before_its_commit() -> (
    None
):
    """Of others nothing is reported; a few failed reports do not hold it up."""
    lane = MemoryLane()
    again = ((REDRIVES, b"2"),)
    lane.dead_letters.fails = 1
    lane.log.put("again", headers=again)
    lane.log.put("later", headers=again, fails=1)
    lane.log.put("dead", headers=again, permanent=True)
    lane.log.put("first", headers=(("trace", b"1"),))
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 4)

    assert sorted(lane.dead_letters.dones) == [("again", 2), ("later", 2)]
    assert list(lane.dead_letters.reasons) == ["dead"]
    assert sorted(lane.done) == ["again", "first", "later"]


async def test_unreported_success_blocks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ticket is done, whatever the archive knows."""
    monkeypatch.setattr("carteiro.tickets.consume.dead_lettering._TELLING_PAUSES_S", (0.0, 0.0))
    lane = MemoryLane()
    lane.dead_letters.fails = 9
    lane.log.put("again", headers=((REDRIVES, b"1"),))
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert (lane.dead_letters.fails, lane.dead_letters.dones) == (6, [])


async def test_success_is_not_reported_without_dead_letters() -> None:
    """There may be no topic for it."""
    lane = MemoryLane(dlq_enabled=False)
    lane.log.put("again", headers=((REDRIVES, b"1"),))
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.dead_letters.dones == []


async def test_revoked_partition_ends_tickets_in_flight_and_starts_none() -> None:
    """The safe prefix is committed, with what ended beyond it."""
    lane = MemoryLane(2, concurrency=2)
    lane.gates["slow"] = asyncio.Event()
    lane.log.put("slow")
    for id in ids("t", 20):
        lane.log.put(id, key="same", seconds=0.002)
    async with lane.working():
        await lane.until(lambda: len(lane.done) >= 2)
        leaving = asyncio.create_task(lane.log.revoke((TOPIC, 0)))
        await asyncio.sleep(0.01)
        assert not leaving.done()
        done = len(lane.done)
        lane.gates["slow"].set()
        await leaving
        assert lane.log.committed == len(lane.done)
        assert len(lane.done) <= done + 2
        lane.log.put("other", partition=1)
        await lane.until(lambda: "other" in lane.done)


async def test_a_revoked_partition_is_not_waited_for_beyond_its_deadline() -> None:
    """A handler still in flight is cancelled, and its ticket read again by the next owner."""
    lane = MemoryLane(drain_ms=20)
    lane.gates["stuck"] = asyncio.Event()
    lane.log.put("stuck")
    lane.log.put("good")
    async with lane.working():
        await lane.until(lambda: "good" in lane.done and lane.under_way == 1)
        await lane.log.revoke((TOPIC, 0))
        assert lane.under_way == 0
        assert lane.log.committed == 0
        lane.gates.clear()
        await lane.log.give((TOPIC, 0))
        await lane.until(lambda: lane.log.committed == 2)
    assert lane.done == ["good", "stuck"]


async def test_ticket_that_ends_after_its_partition_was_lost_leaves_no_trace() -> None:
    """No commit, no count, no dead letter: another worker has the ticket."""
    lane = MemoryLane(2)
    for id in ("ok", "bad"):
        lane.gates[id] = asyncio.Event()
    lane.log.put("ok")
    lane.log.put("bad", fails=9)
    lane.counter.failures["bad"] = 2
    async with lane.working():
        await lane.until(lambda: lane.under_way == 2)
        await lane.log.lose((TOPIC, 0))
        for gate in lane.gates.values():
            gate.set()
        lane.log.put("other", partition=1)
        await lane.until(lambda: "other" in lane.done)
    assert (TOPIC, 0) not in lane.log.commits
    assert lane.counter.failures == {"bad": 2}
    assert not lane.dead_letters.deaths


async def test_a_partition_lost_during_back_off_is_not_run_by_its_old_owner() -> None:
    """Its timer ends with it."""
    lane = MemoryLane(
        2, retry=RetryPolicy(max_attempts=3, base=timedelta(milliseconds=20), jitter=0)
    )
    lane.log.put("bad", fails=9)
    async with lane.working():
        await lane.until(lambda: len(lane.counter.failures) == 1)
        await lane.log.lose((TOPIC, 0))
        await asyncio.sleep(0.05)
    assert lane.runs == [("bad", 1)]


async def test_a_commit_that_is_refused_is_made_again() -> None:
    """Unless the partition is gone by then."""
    lane = MemoryLane()
    lane.log.refuses_commits = True
    lane.log.put("t")
    async with lane.working():
        await lane.until(lambda: lane.done == ["t"])
        await asyncio.sleep(0.03)
        lane.log.refuses_commits = False
        await lane.until(lambda: lane.log.committed == 1)


async def test_a_partition_that_runs_too_far_ahead_is_paused_and_resumed() -> None:
    """The window bounds what a crash would run again, and what is held in memory."""
    lane = MemoryLane(window=100)
    lane.gates["slow"] = asyncio.Event()
    lane.log.put("slow")
    for id in ids("t", 400):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.paused == {(TOPIC, 0)})
        await asyncio.sleep(0.01)
        assert len(lane.done) < 200
        lane.gates["slow"].set()
        await lane.until(lambda: lane.log.committed == 401)
    assert not lane.log.paused


async def test_many_bytes_pause_partitions_too() -> None:
    """Large tickets fill memory long before they fill a window."""
    lane = MemoryLane(window_bytes=10_000, concurrency=1)
    for id in ids("t", 100):
        lane.log.put(id, filler="x" * 1000, seconds=0.001)
    async with lane.working() as runner:
        await lane.until(lambda: bool(lane.log.paused))
        assert held(runner) < 70_000
        await lane.until(lambda: lane.log.committed == 100)
        assert held(runner) == 0


async def test_a_poison_ticket_that_holds_up_the_window_is_ejected() -> None:
    """Its waits are cut short, so that it ends in one way or the other; it keeps its attempts."""
    lane = MemoryLane(retry=NEVER_AGAIN, window=100)
    lane.log.put("poison", fails=9)
    for id in ids("t", 300):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 301)
    assert [each for each in lane.runs if each[0] == "poison"] == [
        ("poison", 1),
        ("poison", 2),
        ("poison", 3),
    ]
    assert lane.dead_letters.reasons == {"poison": "max_retries_exceeded"}


async def test_an_outage_pauses_its_type_burns_few_attempts_and_ends_by_itself() -> None:
    """Types that are well go on meanwhile."""
    lane = MemoryLane(concurrency=5)
    lane.is_out = True
    for id in ids("t", 100):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: len(lane.runs) >= TICKETS)
        await asyncio.sleep(0.05)
        assert len(lane.runs) <= TICKETS + 5
        assert max(lane.counter.failures.values()) <= 2
        lane.is_out = False
        lane.log.put("well", "TEST")
        await lane.until(lambda: "well" in lane.done)
        await lane.until(lambda: lane.log.committed == 101)
    assert not lane.dead_letters.deaths
    assert len(lane.done) == 101


async def test_stopping_at_once_waits_for_nothing_and_commits_results() -> None:
    """Tickets in flight are read again."""
    lane = MemoryLane(drain_ms=60_000)
    lane.gates["stuck"] = asyncio.Event()
    lane.log.put("good")
    lane.log.put("stuck")
    async with lane.working() as runner:
        await lane.until(lambda: "good" in lane.done and lane.under_way == 1)
        runner.stop_now()
    assert lane.log.committed == 1
    assert lane.done == ["good"]


async def test_a_dead_letter_that_could_not_be_kept_whole_is_counted_as_oversized() -> None:
    """It can be redriven from its own topic alone, for as long as that keeps it."""
    lane = MemoryLane()
    lane.dead_letters.keeps_all = False
    lane.log.put("large", permanent=True)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    line = b'worker_agent_dlq_messages_total{reason="oversized",task_type="BUILD"} 1.0'
    assert line in lane.metrics.page().splitlines()


async def test_recreated_topic_is_read_from_its_beginning() -> None:
    """The notes are of records that are gone: nothing is taken for done that never ran."""
    lane = MemoryLane()
    for id in ids("old", 50):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 50)
        lane.log.records[TOPIC, 0].clear()
        lane.log._places[TOPIC, 0] = 0
        for id in ids("new", 60):
            lane.log.put(id)
        await lane.until(lambda: lane.log.committed == 60)
    assert sorted(lane.done[50:]) == sorted(ids("new", 60))


async def test_lag_before_the_first_record_counts_uncommitted_records() -> None:
    """A worker that starts on a topic where all is done has nothing to do, and says so."""
    lane = MemoryLane()
    for id in ids("t", 30):
        lane.log.put(id)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 30)
    async with lane.working() as runner:
        await lane.until(lambda: bool(runner._partitions))
        assert runner.lag == 0


async def test_errors_caused_by_the_payload_are_not_an_outage() -> None:
    """A batch of malformed tickets on a quiet type is dead after three tries each, not paused for ever."""
    lane = MemoryLane()
    for id in ids("bad", 2 * TICKETS):
        lane.log.put(id)

    async def raising(ticket: Ticket) -> None:
        raise KeyError(ticket.fields["ticket_id"])

    lane.function = raising
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2 * TICKETS)
    assert len(lane.dead_letters.deaths) == 2 * TICKETS


async def test_a_bug_of_ours_on_the_way_to_the_grave_is_seen_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its key stays held, its partition is not stuck in silence."""
    monkeypatch.setattr("carteiro.tickets.consume.dead_lettering._FIRST_PAUSE_S", 0.001)
    lane = MemoryLane()
    bugs = [TypeError("a bug"), TypeError("a bug")]

    def raise_one(_: object) -> None:
        if bugs:
            raise bugs.pop()

    lane.dead_letters.before = raise_one
    lane.log.put("t", permanent=True)
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 1)
    assert lane.dead_letters.reasons == {"t": "permanent_error"}
    assert (
        b'worker_agent_dlq_publish_errors_total{error_type="TypeError"} 2.0' in lane.metrics.page()
    )


class Panic(BaseException):
    """As libraries in other languages raise them."""


@pytest.mark.parametrize(
    "error", [SystemExit, asyncio.CancelledError, TimeoutError, GeneratorExit, Panic]
)
@pytest.mark.parametrize("awaits_thread", [False, True])
async def test_whatever_a_handler_raises_is_a_failure_of_its_ticket_alone(
    error: type[BaseException], awaits_thread: bool
) -> None:
    """The worker goes on."""
    lane = MemoryLane()
    lane.log.put("bad")
    lane.log.put("good")

    def plain() -> None:
        raise error

    async def raising(ticket: Ticket) -> None:
        if ticket.id == "bad":
            await asyncio.to_thread(plain) if awaits_thread else plain()
        lane.done.append(ticket.id)

    lane.function = raising
    async with lane.working():
        await lane.until(lambda: lane.log.committed == 2)
    assert lane.done == ["good"]
    assert lane.dead_letters.deaths[0].error_type == error.__name__
