"""The worker loop: slots, leases, an unreachable store, and stopping."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import accumulate
from typing import Any, NoReturn

import pytest

from carteiro.engine import storing
from carteiro.engine.slots import Place, Quiet
from carteiro.engine.worker import Lengths, Worker
from carteiro.errors import StoreUnavailable
from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Pool
from carteiro.model import (
    EMAIL,
    ZERO,
    Begun,
    Claimed,
    ClaimId,
    DeadReason,
    Deferred,
    End,
    Late,
    Lease,
    LeasedJob,
    MessageId,
    Outcome,
    Refused,
    RefusedWhy,
    Rejected,
    Settled,
    Start,
    State,
    Taken,
)
from carteiro.path.confirm import confirm
from carteiro.ports import Handover, Parcel, Store
from support.builders import ACME, BRASA, TASK, a_failure, a_task
from support.clock import past
from support.steps import accepted, claimed, claimed_alone
from support.working import (
    A_MOMENT,
    A_WHILE,
    LONG,
    TOO_LONG,
    Away,
    Gate,
    Office,
    Through,
    a_kind,
    an_office,
    logged,
    short,
    until_done,
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for the store are short; these lengths are not settings, and the waits are real."""
    monkeypatch.setattr(storing, "FIRST_WAIT_S", A_MOMENT)
    monkeypatch.setattr(storing, "LONGEST_WAIT_S", 2 * A_MOMENT)


def gated(office: Office, gate: Gate, *, slots: int = 5) -> Pool:
    """E-mail that waits before the gate."""
    return Pool("email", slots, (office.email_kind(deliver=gate.deliver),))


async def running(worker: Worker, gate: Gate) -> "asyncio.Task[None]":
    """The worker, with a job before the gate."""
    task = asyncio.create_task(until_done(worker))
    await asyncio.wait_for(gate.arrived.wait(), TOO_LONG)
    return task


# --- slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 2, 5])
async def test_slots_are_never_exceeded(slots: int) -> None:
    """A claim asks for no more than the free slots, with any number of waiting messages."""
    inside: list[int] = []
    turnstile = asyncio.Semaphore(0)

    async def slow(_parcel: Parcel, _handover: Handover) -> Outcome:
        inside.append(1)
        assert sum(inside) <= slots
        await turnstile.acquire()
        inside.append(-1)
        return Taken("")

    async with an_office() as office:
        for _ in range(12):
            await office.task()
        working = asyncio.create_task(office.work(Pool("task", slots, (a_kind(slow),))))
        async with asyncio.timeout(TOO_LONG):
            for ended in range(12):
                while inside.count(-1) < ended or sum(inside) < min(slots, 12 - ended):
                    await asyncio.sleep(0)
                turnstile.release()
        await working

        assert await office.backend.reading.states() == {State.SENT: 12}
        assert max(accumulate(inside)) == slots


async def test_each_pool_has_its_own_slots() -> None:
    """A full pool does not block another."""
    async with an_office() as office:
        gate = Gate()
        for _ in range(3):
            await office.post()
        task = await office.task()
        free = Gate()
        free.open.set()
        pools = (gated(office, gate, slots=1), Pool("task", 1, (a_kind(free.deliver),)))
        working = await running(office.worker(*pools), gate)

        async with asyncio.timeout(TOO_LONG):  # until it is stored, too
            while await office.state(task) is not State.SENT:
                await asyncio.sleep(A_MOMENT)
        gate.open.set()
        await working

        assert gate.most_inside == 1


async def test_pool_without_kinds_claims_nothing() -> None:
    """A worker without anything to do waits to be stopped."""
    async with an_office() as office:
        worker = office.worker(Pool("nothing", 5, ()))
        working = asyncio.create_task(until_done(worker))
        await asyncio.sleep(0)

        worker.stop()
        await working


async def test_work_that_arrives_while_another_pool_wakes_up_is_not_missed() -> None:
    """A wake-up is for every pool, also for one that has just found nothing."""
    looked, go_on = asyncio.Event(), asyncio.Event()

    class Pausing(Through):
        async def claim(self, **asked: Any) -> Claimed:
            got = await super().claim(**asked)
            if TASK in asked["kinds"] and not looked.is_set():
                looked.set()
                await go_on.wait()
            return got

    async with an_office() as office:
        gate = Gate()
        gate.open.set()
        pools = (gated(office, Gate()), Pool("task", 1, (a_kind(gate.deliver),)))
        store, wake = Pausing(office.backend.store), office.backend.wake
        worker = office.worker(*pools, store=store, wake=wake)
        working = asyncio.create_task(until_done(worker))
        await asyncio.wait_for(looked.wait(), TOO_LONG)

        await office.task()
        await asyncio.sleep(A_WHILE)
        go_on.set()
        await asyncio.wait_for(gate.arrived.wait(), 1.0)

        worker.stop()
        await working


async def test_claim_that_says_now_is_repeated_at_once() -> None:
    """There was nothing, and there is work by now: no wait in between."""

    class Sooner(Through):
        is_first = True

        async def claim(self, **asked: Any) -> Claimed:
            if self.is_first:
                self.is_first = False
                return Claimed([], ZERO)
            return await super().claim(**asked)

    async with an_office() as office:
        message = await office.post()
        before = office.clock()

        await office.work(store=Sooner(office.backend.store))

        assert await office.state(message) is State.SENT
        assert office.clock() == before


# --- leases -----------------------------------------------------------------------------------


async def test_lease_of_a_long_task_is_extended() -> None:
    """No other worker gets it meanwhile."""
    extended = asyncio.Event()

    class Watched(Through):
        async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
            answers = await super().extend(leases, lease=lease)
            extended.set()
            assert answers == [True]
            return answers

    async with an_office() as office:
        gate = Gate()
        message = await office.task()
        store = Watched(office.backend.store)
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        working = await running(office.worker(pool, store=store, lengths=short()), gate)
        for _ in range(3):
            office.clock.advance(timedelta(milliseconds=5))
            extended.clear()
            await asyncio.wait_for(extended.wait(), TOO_LONG)

        assert await claimed(office.backend.store, kinds=[TASK]) == []
        gate.open.set()
        await working

        assert await office.state(message) is State.SENT
        assert len(gate.began) == 1


async def test_declared_attempt_is_not_extended() -> None:
    """The hold replaces the lease, and has its own end."""
    asked: list[Lease] = []

    class Watched(Through):
        async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
            asked.extend(leases)
            return await super().extend(leases, lease=lease)

    async with an_office() as office:
        gate = Gate()
        await office.post()
        store = Watched(office.backend.store)
        worker = office.worker(gated(office, gate), store=store, lengths=short())
        working = await running(worker, gate)
        asked.clear()  # calls before the declare do not count
        await asyncio.sleep(0.005)
        gate.open.set()
        await working

        assert asked == []


async def test_failed_extension_is_repeated() -> None:
    """The timer goes on: one failure does not give up all leases."""
    async with an_office() as office:
        gate = Gate()
        await office.task()
        store = Away(office.backend.store, extend=2)
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        with logged() as lines:
            working = await running(office.worker(pool, store=store, lengths=short()), gate)
            await asyncio.wait_for(store.is_back.wait(), TOO_LONG)
            gate.open.set()
            await working

        failed = [line for line in lines if line["event"] == "store.failed"]
        assert [line["operation"] for line in failed] == ["extend", "extend"]


# --- suspects ---------------------------------------------------------------------------------


async def a_suspect(office: Office, **fields: Any) -> MessageId:
    """A task that two workers did not survive."""
    message = await office.task(**fields)
    for _ in range(2):
        await claimed_alone(office.backend.store, kinds=[TASK], lease=timedelta(seconds=1))
        office.clock.advance(timedelta(seconds=1))
    return message


async def test_nothing_is_claimed_while_a_suspect_waits_or_runs() -> None:
    """If it kills the process, no other message counts a crash."""
    in_hand: list[int] = []
    async with an_office() as office:
        suspect = await a_suspect(office, priority=1)
        others = [await office.task() for _ in range(4)]

        async def watched(parcel: Parcel, _handover: Handover) -> Outcome:
            if parcel.message == suspect:
                await asyncio.sleep(A_WHILE)
                in_hand.append(len(worker._runs))
            return Taken("")

        worker = office.worker(Pool("task", 5, (a_kind(watched),)))
        await until_done(worker)

        assert in_hand == [1]
        assert {await office.state(each) for each in others} == {State.SENT}


async def test_suspect_waits_for_a_claim_of_another_pool() -> None:
    """A claim in flight brings jobs that would die with it: they run first."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Through):
        async def claim(self, **options: Any) -> Claimed:
            got = await super().claim(**options)
            if got.jobs and got.jobs[0].kind == EMAIL:
                asked.set()
                await go_on.wait()
            return got

    async with an_office() as office:
        suspect = await a_suspect(office)
        email = await office.post()
        gate = Gate()
        pools = (gated(office, gate), Pool("task", 5, (a_kind(gate.deliver),)))
        worker = office.worker(*pools, store=Slow(office.backend.store), lengths=short(lease=LONG))
        working = asyncio.create_task(until_done(worker))
        await asyncio.wait_for(asked.wait(), TOO_LONG)
        await asyncio.sleep(A_WHILE)
        assert gate.began == []

        go_on.set()
        gate.open.set()
        await working

        assert [parcel.message for parcel in gate.began] == [email, suspect]
        assert gate.most_inside == 1


async def test_suspects_of_one_tenant_leave_time_to_others() -> None:
    """Each takes two seconds alone: at most a twentieth of the time, while there is other work."""
    alone, shares = 0.0, list[float]()
    async with an_office() as office:
        suspects = {await office.task() for _ in range(200)}
        for _ in range(2):
            claims = {"kinds": [TASK], "lease": timedelta(seconds=1)}
            assert len(await claimed(office.backend.store, limit=200, **claims)) == 200
            office.clock.advance(timedelta(seconds=1))
            await office.backend.store.reap(limit=200)
        others = [await office.task(tenant=BRASA) for _ in range(400)]
        began = office.clock.at()

        async def takes_time(parcel: Parcel, _handover: Handover) -> Outcome:
            nonlocal alone
            is_suspect = parcel.message in suspects
            office.clock.advance(timedelta(seconds=2 if is_suspect else 0.5))
            alone += 2 * is_suspect
            elapsed = office.clock.at() - began
            shares.append((alone - 2) / elapsed.total_seconds())
            if parcel.message == others[-1]:
                worker.stop()
            return Taken("")

        worker = office.worker(Pool("task", 5, (a_kind(takes_time),)))
        await until_done(worker)

        assert alone > 0
        assert max(shares) <= 0.05


async def test_new_worker_delays_its_suspects() -> None:
    """Its predecessor may have died of one: other jobs run for the time of a lease first."""
    ran: list[tuple[MessageId, timedelta]] = []
    async with an_office() as office:
        suspect = await a_suspect(office, priority=1, ttl=timedelta(hours=1))
        other = await office.task()
        began = office.clock.at()

        async def watched(parcel: Parcel, _handover: Handover) -> Outcome:
            ran.append((parcel.message, office.clock.at() - began))
            return Taken("")

        lengths = Lengths(warm_up=timedelta(seconds=30))
        await office.work(Pool("task", 5, (a_kind(watched),)), lengths=lengths)

        assert ran == [(other, timedelta(0)), (suspect, timedelta(seconds=30))]


async def test_slow_suspect_runs_alone_for_one_lease_only() -> None:
    """After that others run alongside: it hangs, and does not kill."""
    async with an_office() as office:
        suspect = await a_suspect(office, priority=1)
        other = await office.task()
        gate = Gate()

        async def slow(parcel: Parcel, handover: Handover) -> Outcome:
            if parcel.message == suspect:
                return await gate.deliver(parcel, handover)
            gate.open.set()
            return Taken("")

        await office.work(Pool("task", 5, (a_kind(slow),)), lengths=short())

        assert await office.state(other) is State.SENT
        assert await office.state(suspect) is State.SENT


async def test_message_that_killed_five_workers_ends_without_delaying_others() -> None:
    """It is not run any more: it need not be alone, and uses no ration."""
    async with an_office() as office:
        deadly = await office.task(priority=1)
        for _ in range(5):
            await claimed_alone(office.backend.store, kinds=[TASK], lease=timedelta(seconds=1))
            office.clock.advance(timedelta(seconds=1))
        gate = Gate()
        other = await office.task()
        worker = office.worker(
            Pool("task", 2, (a_kind(gate.deliver),)), lengths=Lengths(warm_up=timedelta(hours=1))
        )
        began = office.clock.at()
        working = await running(worker, gate)
        gate.open.set()
        await working

        assert await office.dead_for(deadly) is DeadReason.CRASHES_WORKER
        assert await office.state(other) is State.SENT
        assert office.clock.at() - began < timedelta(hours=1)


async def test_bug_in_the_lease_timer_does_not_end_the_leases() -> None:
    """An expired lease of a living worker would look like a crash of its job."""

    class Broken(Through):
        extended = 0

        async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
            self.extended += 1
            if self.extended == 1:
                raise ZeroDivisionError
            gate.open.set()
            return await super().extend(leases, lease=lease)

    async with an_office() as office:
        gate = Gate()
        message = await office.task()
        store = Broken(office.backend.store)
        pool = Pool("task", 1, (a_kind(gate.deliver),))
        await until_done(office.worker(pool, store=store, lengths=short()))

        assert await office.state(message) is State.SENT
        assert store.extended > 1


# --- starts soon after their claims -----------------------------------------------------------


async def test_job_that_cannot_start_soon_after_its_claim_is_claimed_again_once() -> None:
    """A send limit counts claims: a late start would fall into the period of later ones."""

    class Counted(Through):
        released = 0

        async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
            self.released += len(leases)
            await super().release(leases, wait=wait)

    async with an_office() as office:
        for within, given_back in ((ZERO, 3), (LONG, 0), (None, 0)):
            messages = [await office.post() for _ in range(3)]
            store = Counted(office.backend.store)
            kind = office.email_kind(start_within=within)

            await office.work(Pool("email", 5, (kind,)), store=store)

            assert {await office.state(each) for each in messages} == {State.SENT}
            assert store.released == given_back


# --- unreachable store ------------------------------------------------------------------------


async def test_outcome_is_settled_until_it_is_stored() -> None:
    """It is delivered once, for any length of the outage."""
    async with an_office() as office:
        message = await office.post()
        with logged() as lines:
            await office.work(store=Away(office.backend.store, settle=4))

        assert await office.state(message) is State.SENT
        assert await office.deliveries(message) == 1
        failed = [line for line in lines if line["event"] == "store.failed"]
        assert [line["operation"] for line in failed] == ["settle"] * 4
        assert [line["nextRetryDelay"] for line in failed] == [2, 4, 4, 4]


async def test_failed_declare_is_repeated() -> None:
    """Nothing is sent before it is declared, and the message is not charged for the store."""
    async with an_office() as office:
        message = await office.post()

        await office.work(store=Away(office.backend.store, declare=7))

        assert await office.story(message) == [
            *("ENQUEUED", "RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT")
        ]
        row = await office.row(message)
        assert (row.attempts, row.charged, row.in_doubt) == (1, 0, 0)


async def test_lost_answers_do_no_harm() -> None:
    """A declare and a settle that were stored without an answer are repeated, and write nothing."""

    class Mute(Through):
        told = 0

        async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
            answers = await super().declare(starts)
            self._lose()
            return answers

        async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
            answers = await super().settle(ends)
            self._lose()
            return answers

        def _lose(self) -> None:
            self.told += 1
            if self.told % 2:
                raise StoreUnavailable("connection reset")

    async with an_office() as office:
        message = await office.post()

        await office.work(store=Mute(office.backend.store))

        assert await office.story(message) == [
            *("ENQUEUED", "RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT")
        ]
        assert await office.deliveries(message) == 1


async def test_failed_claim_is_repeated() -> None:
    """With growing delays, and from the first one after an answer."""
    async with an_office() as office:
        message = await office.post()
        with logged() as lines:
            await office.work(store=Away(office.backend.store, claim=3))

        assert await office.state(message) is State.SENT
        failed = [line for line in lines if line["event"] == "store.failed"]
        assert [line["nextRetryDelay"] for line in failed] == [2, 4, 4]
        assert {line["operation"] for line in failed} == {"claim"}


async def test_delays_start_again_after_an_answer() -> None:
    """They grow within one outage, and start again with the next."""

    class Moody(Through):
        calls = 0

        async def claim(self, **asked: Any) -> Claimed:
            self.calls += 1
            if self.calls in {1, 3}:
                raise StoreUnavailable("moody")
            return await super().claim(**asked)

    async with an_office() as office:
        await office.post()
        with logged() as lines:
            await office.work(store=Moody(office.backend.store))

        waits = [line["nextRetryDelay"] for line in lines if line["event"] == "store.failed"]
        assert waits == [2, 2]


async def test_job_that_is_not_due_is_released_until_it_is() -> None:
    """A stale entry of the queue: the ledger has the time, and the claim does not count."""

    class Stale(Through):
        is_first = True

        async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
            if not self.is_first:
                return await super().declare(starts)
            self.is_first = False
            return [Refused(RefusedWhy.NOT_DUE, timedelta(seconds=3))]

    async with an_office() as office:
        message = await office.post()
        before = office.clock()

        await office.work(store=Stale(office.backend.store))

        assert await office.story(message) == [
            *("ENQUEUED", "RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT")
        ]
        assert office.clock() - before == 3000


async def test_unexpected_error_does_not_end_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is logged, and the next claim may succeed: other pools must not stop for it."""
    monkeypatch.setattr(storing, "FIRST_WAIT_S", 0.001)

    class Broken(Through):
        claims = 0

        async def claim(self, **asked: Any) -> Claimed:
            self.claims += 1
            if self.claims == 1:
                raise ZeroDivisionError
            return await super().claim(**asked)

    async with an_office() as office:
        message = await office.post()

        with logged() as lines:
            await office.work(store=Broken(office.backend.store))

        assert await office.state(message) is State.SENT
        assert [line["errorType"] for line in lines if line["event"] == "store.failed"] == [
            "ZeroDivisionError"
        ]


async def test_cancel_outlives_the_worker_of_a_task() -> None:
    """The next worker carries it out: the task does not run again."""
    ran = []

    async def run(parcel: Parcel, _: Handover) -> Taken:
        ran.append(parcel.message)
        return Taken("")

    async with an_office() as office:
        [message] = await accepted(office.backend.store, a_task())
        await office.backend.store.claim(
            claim_id=ClaimId("gone"), kinds=[TASK], limit=1, lease=timedelta(seconds=1)
        )
        await office.backend.store.cancel([message], tenant=ACME)
        office.clock.advance(timedelta(seconds=2))

        await office.work(Pool("task", 1, (a_kind(run),)))

        assert (await office.state(message), ran) == (State.CANCELLED, [])


async def test_suspect_does_not_wait_for_ever_for_a_long_job() -> None:
    """After one lease it is released and others are claimed: a hung task must not stop all mail."""
    quiet = Quiet()
    quiet.enter(1)
    assert isinstance(quiet.place_alone(ACME), Place)

    in_time = await quiet.is_alone(timedelta(milliseconds=5))
    quiet.leave()
    alone = await quiet.is_alone(timedelta(seconds=5))

    assert (in_time, alone) == (False, True)


# --- stopping ---------------------------------------------------------------------------------


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


async def test_waiting_suspect_is_released_on_stop() -> None:
    """It never ran: the others did not end in time."""
    async with an_office() as office:
        suspect = await a_suspect(office)
        await office.post()
        gate = Gate()
        pools = (gated(office, gate), Pool("task", 1, (a_kind(gate.deliver),)))
        worker = office.worker(*pools, lengths=short(lease=LONG, grace=timedelta(milliseconds=2)))
        working = await running(worker, gate)
        await asyncio.sleep(A_WHILE)

        worker.stop()
        await working

        assert suspect not in [parcel.message for parcel in gate.began]
        assert (await claimed_alone(office.backend.store, kinds=[TASK])).claims == 3


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
