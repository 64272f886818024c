"""Stopping a worker: jobs in flight end in their time, all others are released."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from carteiro.engine import storing
from carteiro.errors import StoreUnavailable
from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Pool
from carteiro.model import (
    ZERO,
    Claimed,
    ClaimId,
    DeadReason,
    Deferred,
    End,
    Late,
    LeasedJob,
    Outcome,
    Rejected,
    Settled,
    State,
    Taken,
)
from carteiro.path.confirm import confirm
from carteiro.ports import Handover, Parcel, Store
from support.builders import TASK, a_failure
from support.clock import past
from support.steps import claimed_alone
from support.working import (
    A_MOMENT,
    LONG,
    TOO_LONG,
    Away,
    Gate,
    Through,
    a_kind,
    an_office,
    gated,
    logged,
    running,
    short,
    until_done,
)

pytestmark = pytest.mark.usefixtures("impatient")


async def test_stop_finishes_jobs_in_flight_and_claims_no_more() -> None:
    """SIGTERM: the message before the gate is sent, the one behind it stays for others."""
    async with an_office() as office:
        gate = Gate()
        first, second = await office.post(), await office.post()
        worker = office.worker(gated(office, gate, slots=1))
        with logged() as lines:
            working = await running(worker, gate)
            worker.stop()
            await asyncio.sleep(A_MOMENT)
            assert not working.done()
            gate.open.set()
            await working

        assert await office.state(first) is State.SENT
        assert await office.state(second) is State.ENQUEUED
        told = {line["event"]: line for line in lines}
        assert told["worker.stopping"]["inFlight"] == 1
        assert told["worker.stopped"]["released"] == 0


async def test_job_that_exceeds_the_grace_period_is_released() -> None:
    """Undeclared, it is as if it had never been claimed: the next worker has it at once."""
    async with an_office() as office:
        gate = Gate()
        message = await office.task()
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        worker = office.worker(pool, lengths=short(lease=LONG, grace=timedelta(milliseconds=2)))
        with logged() as lines:
            working = await running(worker, gate)
            worker.stop()
            await working

        assert await office.story(message) == []
        job = await claimed_alone(office.backend.store, kinds=[TASK])
        assert job.claims == 1
        assert lines[-1]["released"] == 1


async def test_declared_attempt_that_does_not_end_in_time_is_in_doubt() -> None:
    """It was handed over: releasing it would hide that."""
    async with an_office() as office:
        gate = Gate()
        message = await office.post()
        worker = office.worker(gated(office, gate), lengths=short(grace=timedelta(milliseconds=2)))
        working = await running(worker, gate)

        worker.stop()
        await working

        assert await office.state(message) is State.SENT_ATTEMPT
        office.clock.advance(past(LONG * 2))
        assert (await claimed_alone(office.backend.store)).open_attempt


async def test_stop_does_not_wait_for_a_call_that_ignores_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends with the process; its job is not released, as it still runs."""
    monkeypatch.setattr("carteiro.engine.worker._DEAF_S", A_MOMENT)
    gate = Gate()

    async def deaf(parcel: Parcel, handover: Handover) -> Outcome:
        while not gate.open.is_set():
            with suppress(asyncio.CancelledError):
                await gate.deliver(parcel, handover)
        return Taken("")

    async with an_office() as office:
        await office.task()
        worker = office.worker(Pool("task", 1, (a_kind(deaf),)))
        working = asyncio.create_task(worker.run())
        await gate.arrived.wait()
        with logged() as lines:
            worker.stop_now()
            async with asyncio.timeout(TOO_LONG):
                await working
        gate.open.set()

        assert "worker.calls_go_on" in {line["event"] for line in lines}


async def test_stop_now_does_not_wait() -> None:
    """A second signal, before or during the wait of the first one: the rest is released at once."""
    for stop_first in (False, True):
        async with an_office() as office:
            gate = Gate()
            await office.task()
            pool = Pool("task", 1, (a_kind(gate.deliver),))
            worker = office.worker(pool, lengths=short(lease=LONG, grace=LONG))
            working = await running(worker, gate)
            if stop_first:
                worker.stop()
                await asyncio.sleep(A_MOMENT)

            worker.stop_now()
            await asyncio.wait_for(working, 1.0)

            assert (await claimed_alone(office.backend.store, kinds=[TASK])).claims == 1


async def test_claim_in_flight_is_released_on_stop() -> None:
    """Its answer comes after the stop: nothing of it leaks."""
    asked, answer = asyncio.Event(), asyncio.Event()

    class Slow(Through):
        async def claim(self, **options: Any) -> Claimed:
            got = await super().claim(**options)
            asked.set()
            await answer.wait()
            return got

    async with an_office() as office:
        await office.post()
        worker = office.worker(store=Slow(office.backend.store))
        working = asyncio.create_task(until_done(worker))
        await asked.wait()

        worker.stop()
        await asyncio.sleep(A_MOMENT)
        answer.set()
        await working

        assert (await claimed_alone(office.backend.store)).claims == 1


async def test_claim_that_fails_during_a_stop_blocks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is nothing to release, and no retry."""
    monkeypatch.setattr(storing, "FIRST_WAIT_S", 60.0)
    asked, answer = asyncio.Event(), asyncio.Event()

    class Gone(Through):
        async def claim(self, **_options: Any) -> NoReturn:
            asked.set()
            await answer.wait()
            raise StoreUnavailable("gone")

    async with an_office() as office:
        worker = office.worker(store=Gone(office.backend.store))
        working = asyncio.create_task(until_done(worker))
        await asked.wait()

        worker.stop()
        await asyncio.sleep(A_MOMENT)
        answer.set()
        await working

        assert working.done()


class StandingStill:
    """A `Wake` under which no lease ends."""

    def rings(self) -> int:
        """It never rings."""
        return 0

    async def wait(self, _timeout: timedelta, *, since: int, kinds: object = ()) -> bool:  # noqa: ARG002
        """Wait a moment."""
        await asyncio.sleep(A_MOMENT)
        return since > 0


class LosesClaims(Through):
    """A store that commits this many claims with jobs, and loses the answers."""

    def __init__(self, store: Store, *, claims: int) -> None:
        super().__init__(store)
        self.left = claims
        self.lost = asyncio.Event()

    async def claim(self, **asked: Any) -> Claimed:
        """Claim, and lose the answer."""
        claimed = await super().claim(**asked)
        if claimed.jobs and self.left:
            self.left -= 1
            self.lost.set()
            raise StoreUnavailable("the connection broke")
        return claimed


async def test_jobs_of_claims_without_an_answer_do_not_become_suspects() -> None:
    """After any number of lost answers they run concurrently, before the lease ends."""
    async with an_office() as office:
        gate = Gate()
        for _ in range(3):
            await office.task()
        store = LosesClaims(office.backend.store, claims=6)
        worker = office.worker(Pool("task", 5, (a_kind(gate.deliver),)), store=store)
        began = office.clock.at()
        working = await running(worker, gate)
        while len(gate.began) < 3:
            await asyncio.sleep(A_MOMENT)
        gate.open.set()
        await working

        assert gate.most_inside == 3
        assert office.clock.at() == began


async def test_stopping_worker_undoes_a_claim_without_an_answer() -> None:
    """Others need not wait for the end of its lease."""
    async with an_office() as office:
        message = await office.task()
        store = LosesClaims(office.backend.store, claims=1)
        worker = office.worker(Pool("task", 1, (a_kind(Gate().deliver),)), store=store)
        working = asyncio.create_task(until_done(worker))
        await asyncio.wait_for(store.lost.wait(), TOO_LONG)
        worker.stop()
        await working

        job = await claimed_alone(office.backend.store, kinds=[TASK])
        assert (job.lease.job, job.claims) == (message, 1)


async def test_claim_committed_after_its_undo_is_undone_again() -> None:
    """The store answers again, and only then executes the earlier call."""
    counts: list[int] = []

    class CommitsLate(Through):
        first: dict[str, Any] | None = None

        async def claim(self, **asked: Any) -> Claimed:
            if self.first is None:
                self.first = asked
                raise StoreUnavailable("no answer in time")
            claimed = await super().claim(**asked)
            counts.extend(job.claims for job in claimed.jobs)
            return claimed

        async def undo_claims(self, claims: Sequence[ClaimId]) -> None:
            await super().undo_claims(claims)
            if self.first:
                late, self.first = self.first, {}
                assert len((await super().claim(**late)).jobs) == 1

    async def deliver(_parcel: Parcel, _handover: Handover) -> Outcome:
        worker.stop()
        return Taken("")

    async with an_office() as office:
        message = await office.task()
        worker = office.worker(
            Pool("task", 1, (a_kind(deliver),)),
            store=CommitsLate(office.backend.store),
            wake=StandingStill(),
            lengths=short(),
        )
        await until_done(worker)

        assert counts == [1]
        assert await office.state(message) is State.SENT


async def test_failed_release_leaves_the_leases_to_expire() -> None:
    """It is logged, and the worker ends all the same."""
    async with an_office() as office:
        gate = Gate()
        await office.task()
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        store = Away(office.backend.store, release=1)
        worker = office.worker(pool, store=store, lengths=short(lease=LONG, grace=ZERO))
        with logged() as lines:
            working = await running(worker, gate)
            worker.stop()
            await working

        assert "release" in [line.get("operation") for line in lines]
        office.clock.advance(past(LONG))
        assert (await claimed_alone(office.backend.store, kinds=[TASK])).claims == 2


async def test_failed_release_is_repeated() -> None:
    """It does not look like a crash of the worker: the job need not wait for the end of its lease."""
    counts: list[int] = []

    class Counting(Away):
        async def claim(self, **asked: Any) -> Claimed:
            claimed = await super().claim(**asked)
            counts.extend(job.claims for job in claimed.jobs)
            return claimed

    def fail_once(job: LeasedJob) -> Confirmation:
        if len(counts) == 1:
            raise StoreUnavailable("no template")
        worker.stop()
        return confirm(job)

    async with an_office() as office:
        message = await office.post()
        worker = office.worker(
            Pool("email", 1, (office.email_kind(confirm=fail_once),)),
            store=Counting(office.backend.store, release=2),
            wake=StandingStill(),
            lengths=short(),
        )
        await until_done(worker)

        assert counts == [1, 1]
        assert await office.state(message) is State.SENT


async def test_outcome_being_stored_is_stored_before_the_rest_is_released() -> None:
    """Stopped at once while the settle waits: its failure counts, it is not run again."""
    writing, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Through):
        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            writing.set()
            await go_on.wait()
            return await super().settle(ends)

    async def refuses(_parcel: Parcel, _handover: Handover) -> Outcome:
        return Rejected(a_failure(retryable=False))

    async with an_office() as office:
        messages = [await office.task() for _ in range(2)]
        pool = Pool("task", 2, (a_kind(refuses),))
        worker = office.worker(pool, store=Slow(office.backend.store))
        working = asyncio.create_task(until_done(worker))
        await writing.wait()

        worker.stop_now()
        await asyncio.sleep(A_MOMENT)
        go_on.set()
        await working

        reasons = [await office.dead_for(message) for message in messages]
        assert reasons == [DeadReason.PERMANENT_ERROR] * 2


async def test_cancelled_worker_finishes() -> None:
    """As with the first signal; nothing is left running."""
    async with an_office() as office:
        gate = Gate()
        message = await office.task()
        worker = office.worker(Pool("task", 1, (a_kind(gate.deliver),)), lengths=short(lease=LONG))
        before = asyncio.all_tasks()
        working = await running(worker, gate)

        working.cancel()
        await asyncio.sleep(A_MOMENT)
        gate.open.set()
        await asyncio.wait([working], timeout=TOO_LONG)

        assert working.cancelled()
        assert await office.state(message) is State.SENT
        assert asyncio.all_tasks() == before


@pytest.mark.parametrize("pause", [0, A_MOMENT])
async def test_worker_cancelled_twice_does_not_wait(pause: float) -> None:
    """As with the second signal, however soon it comes; nothing is left running, nothing is lost."""
    async with an_office() as office:
        gate = Gate()
        await office.task()
        lengths = short(lease=LONG, grace=LONG)
        worker = office.worker(Pool("task", 1, (a_kind(gate.deliver),)), lengths=lengths)
        before = asyncio.all_tasks()
        working = await running(worker, gate)

        working.cancel()
        await asyncio.sleep(pause)
        working.cancel()
        await asyncio.wait([working], timeout=TOO_LONG)

        assert working.cancelled()
        assert (await claimed_alone(office.backend.store, kinds=[TASK])).claims == 1
        assert asyncio.all_tasks() == before


async def test_worker_leaves_nothing_behind() -> None:
    """No task, no lease, no slot, after successes, failures and retries."""
    answers: dict[str, int] = {}

    async def moody(parcel: Parcel, _handover: Handover) -> Outcome:
        answers[parcel.message] = answers.get(parcel.message, 0) + 1
        return Taken("") if answers[parcel.message] > 1 else Deferred(a_failure())

    async with an_office() as office:
        for _ in range(10):
            await office.task()
        before = asyncio.all_tasks()
        worker = office.worker(Pool("task", 3, (a_kind(moody),)))

        await until_done(worker)

        assert asyncio.all_tasks() == before
        assert (worker._runs, worker._tasks) == ({}, set())
        assert worker._pools[0].free == 3
        assert await office.backend.reading.states() == {State.SENT: 10}
