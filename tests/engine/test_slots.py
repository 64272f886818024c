"""Orphans: a worker keeps few of the jobs that a dead worker left."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carteiro.engine.slots import Orphans
from carteiro.engine.worker import Worker
from carteiro.errors import StoreUnavailable
from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Kind, Pool
from carteiro.model import (
    EMAIL,
    ZERO,
    Begun,
    Claimed,
    DeadReason,
    End,
    Late,
    Lease,
    LeasedJob,
    MessageId,
    Outcome,
    Refused,
    Settled,
    Start,
    State,
    Taken,
)
from carteiro.path.confirm import confirm
from carteiro.ports import Handover, Parcel
from support.builders import TASK
from support.clock import StoreClock, past
from support.steps import claimed
from support.working import (
    A_MOMENT,
    LONG,
    Gate,
    Office,
    Through,
    a_job,
    a_kind,
    an_office,
    short,
    until_done,
)

DAY = timedelta(days=1)


pytestmark = pytest.mark.usefixtures("impatient")


# --- orphans ----------------------------------------------------------------------------------


async def orphans(office: Office, number: int) -> list[MessageId]:
    """Tasks that a worker had when it died."""
    tasks = [await office.task(ttl=DAY) for _ in range(number)]
    await claimed(office.backend.store, kinds=[TASK], limit=number, lease=LONG)
    office.clock.advance(past(LONG))
    return tasks


async def test_orphans_run_one_at_a_time_alongside_others() -> None:
    """One of them may have killed the worker; the others are not to be found with it again."""
    running: set[MessageId] = set()
    seen: list[frozenset[MessageId]] = []

    async def watched(parcel: Parcel, _handover: Handover) -> Outcome:
        running.add(parcel.message)
        await asyncio.sleep(A_MOMENT)
        seen.append(frozenset(running))
        running.discard(parcel.message)
        return Taken("")

    async with an_office() as office:
        left = frozenset(await orphans(office, 6))
        for _ in range(3):
            await office.task()
        await office.work(Pool("task", 10, (a_kind(watched),)))

        assert await office.backend.reading.states() == {State.SENT: 9}
    assert {len(each & left) for each in seen} <= {0, 1}
    assert max(len(each) for each in seen) > 1


async def test_many_orphans_run_in_rounds_of_up_to_an_eighth_of_the_slots() -> None:
    """After a worker was killed with hundreds in hand, each round costs one release, and there are not many."""

    class Counting(Through):
        releases = 0

        async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
            self.releases += 1
            await super().release(leases, wait=wait)

    inside, most_inside = 0, 0

    async def watched(_parcel: Parcel, _handover: Handover) -> Outcome:
        nonlocal inside, most_inside
        inside += 1
        most_inside = max(most_inside, inside)
        for _ in range(2):  # the first of a list has begun before the others
            await asyncio.sleep(0)
        inside -= 1
        return Taken("")

    async with an_office() as office:
        await orphans(office, 200)
        store = Counting(office.backend.store)
        await office.work(Pool("task", 200, (a_kind(watched),)), store=store)

        assert await office.backend.reading.states() == {State.SENT: 200}
    assert most_inside == 25
    assert store.releases < 80


class Hand:
    """A clock that is moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def _jobs(number: int) -> list[LeasedJob]:
    return [a_job(claims=2) for _ in range(number)]


def test_rounds_of_orphans_double_while_the_worker_lives() -> None:
    """All of a claim get a round at once, so that none is claimed and given back again and again."""
    clock = Hand()
    limiter = Orphans(80, longest=timedelta(seconds=1), clock=clock)
    jobs = _jobs(40)

    rounds = limiter.surplus(jobs)
    limiter.end(jobs[0].lease)
    more = limiter.surplus(_jobs(2))

    assert [len(leases) for _, leases in rounds] == [1, 2, 4, 8, 10, 10, 4]
    assert [wait / rounds[0][0] for wait, _ in rounds] == [1, 2, 3, 4, 5, 6, 7]
    assert more == []


def test_orphans_wait_a_limited_time_for_a_slow_round() -> None:
    """A process that was stopped for minutes does not put them off for minutes."""
    clock = Hand()
    limiter = Orphans(80, longest=timedelta(seconds=1), clock=clock)
    [slow, *_] = jobs = _jobs(2)
    limiter.surplus(jobs)
    clock.now += 600
    [(running, _)] = limiter.surplus(_jobs(1))
    limiter.end(slow.lease)
    limiter.surplus(_jobs(2))
    [(ended, _)] = limiter.surplus(_jobs(1))

    assert running == ended == timedelta(seconds=1)


def test_orphans_of_another_death_begin_with_one() -> None:
    """The worker that grew its rounds after the last death knows nothing of the new one."""
    clock = Hand()
    limiter = Orphans(80, longest=timedelta(seconds=1), clock=clock)
    for number in (1, 2):
        jobs = _jobs(number)
        assert limiter.surplus(jobs) == []
        for job in jobs:
            limiter.end(job.lease)
    clock.now += 60
    rounds = limiter.surplus(_jobs(3))

    assert [len(leases) for _, leases in rounds] == [1, 1]


async def test_orphans_are_given_back_again_after_an_unexpected_error() -> None:
    """The release failed for an unknown reason: none of the claim stays with the worker."""

    class Fails(Through):
        failures = 1

        async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("unexpected")
            await super().release(leases, wait=wait)

    async with an_office() as office:
        left = await orphans(office, 4)
        sent: set[MessageId] = set()

        async def deliver(parcel: Parcel, _handover: Handover) -> Outcome:
            sent.add(parcel.message)
            if len(sent) == len(left):
                worker.stop()
            return Taken("")

        worker = office.worker(
            Pool("task", 5, (a_kind(deliver),)),
            store=Fails(office.backend.store),
            wake=Onward(office.clock),
            lengths=short(),
        )
        await until_done(worker)

        assert sent == set(left)


class Onward:
    """A wake that moves the store's clock instead of waiting."""

    def __init__(self, clock: StoreClock) -> None:
        self._clock = clock

    def rings(self) -> int:
        """Nobody rings."""
        return 0

    async def wait(self, timeout: timedelta, *, since: int, kinds: object = ()) -> bool:  # noqa: ARG002
        """Let the time pass at once."""
        await asyncio.sleep(A_MOMENT)
        self._clock.advance(timeout)
        return bool(since)


async def test_an_orphan_runs_when_the_others_have_been_given_back() -> None:
    """If it kills at once, it is the only one that was claimed a second time."""
    found: list[set[tuple[int, bool]]] = []

    async with an_office() as office:
        left = await orphans(office, 4)

        async def watched(parcel: Parcel, _handover: Handover) -> Outcome:
            others = [each for each in left if each != parcel.message]
            places = [await office.backend.reading.place(each) for each in others]
            found.append({(each.claims, each.is_claimed) for each in places if each is not None})
            return Taken("")

        await office.work(Pool("task", 4, (a_kind(watched),)))

    assert found == [{(1, False)}, {(1, False)}, {(1, False)}, set()]


async def test_an_orphan_that_takes_long_does_not_hold_up_the_others() -> None:
    """Most that kill do it at once: after a thirtieth of a lease the next one runs alongside it."""
    async with an_office() as office:
        first, second = await orphans(office, 2)
        gate = Gate()

        async def slow(parcel: Parcel, handover: Handover) -> Outcome:
            if parcel.message == first:
                return await gate.deliver(parcel, handover)
            gate.open.set()
            worker.stop()
            return Taken("")

        pool = Pool("task", 5, (a_kind(slow),))
        worker = office.worker(pool, wake=Onward(office.clock), lengths=short())
        await until_done(worker)

        assert [await office.state(each) for each in (first, second)] == [State.SENT] * 2


@pytest.mark.parametrize(("limit", "ended"), [(None, 6), (6, 6), (4, 4)])
async def test_a_one_shot_run_does_not_leave_orphans_behind(limit: int | None, ended: int) -> None:
    """It waits for those that it put off, and they do not count against its limit."""
    async with an_office() as office:
        await orphans(office, 6)

        async def takes_time(_parcel: Parcel, _handover: Handover) -> Outcome:
            office.clock.advance(timedelta(seconds=1))
            return Taken("")

        worker = office.worker(Pool("task", 5, (a_kind(takes_time),)))
        done = await worker.run(until_idle=True, limit=limit)

        assert done == {State.SENT: ended}


# --- a message that kills its worker ------------------------------------------------------------


class Mortal(Through):
    """The store of a worker that can die: from then on nothing of it comes through."""

    def __init__(self, office: Office, seen: Counter[MessageId]) -> None:
        super().__init__(office.backend.store)
        self.worker: Worker | None = None
        self.is_dead = False
        self._seen = seen

    def die(self) -> None:
        """Whatever the worker has in hand stays there."""
        assert self.worker is not None
        self.is_dead = True
        self.worker.stop_now()

    def _answer(self) -> None:
        if self.is_dead:
            raise StoreUnavailable("dead")

    async def claim(self, **asked: Any) -> Claimed:
        """Fail, or pass it on."""
        self._answer()
        got = await super().claim(**asked)
        for job in got.jobs:
            self._seen[job.lease.job] = max(self._seen[job.lease.job], job.claims)
        return got

    async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
        """Fail, or pass it on."""
        self._answer()
        return await super().declare(starts)

    async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
        """Fail, or pass it on."""
        self._answer()
        return await super().settle(ends)

    async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
        """Fail, or pass it on."""
        self._answer()
        await super().release(leases, wait=wait)


def _deadly_task(_office: Office, store: Mortal, deadly: MessageId) -> Kind:
    async def deliver(parcel: Parcel, _handover: Handover) -> Outcome:
        if parcel.message == deadly:
            store.die()
        await asyncio.sleep(0)
        return Taken("")

    return a_kind(deliver)


def _deadly_email(office: Office, store: Mortal, deadly: MessageId) -> Kind:
    def look(job: LeasedJob) -> Confirmation:
        if job.lease.job == deadly:
            store.die()
        return confirm(job)

    return office.email_kind(confirm=look)


@pytest.mark.parametrize("kind", [TASK, EMAIL])
@settings(max_examples=30)
@given(before=st.integers(0, 8), after=st.integers(0, 8), slots=st.integers(1, 12))
async def test_neighbours_of_a_message_that_kills_its_workers_are_never_suspected(
    kind: str, before: int, after: int, slots: int
) -> None:
    """However many were claimed with it: each was left once at most, and is sent."""
    seen: Counter[MessageId] = Counter()
    async with an_office() as office:
        ids = [
            await office.post() if kind == EMAIL else await office.task(ttl=DAY)
            for _ in range(before + 1 + after)
        ]
        deadly, deaths = ids[before], 0
        while True:
            store = Mortal(office, seen)
            deadly_kind = _deadly_email if kind == EMAIL else _deadly_task
            pool = Pool("pool", slots, (deadly_kind(office, store, deadly),))
            store.worker = office.worker(pool, store=store)
            await until_done(store.worker)
            if not store.is_dead:
                break
            deaths += 1
            office.clock.advance(past(LONG))

        assert deaths == 5
        assert await office.dead_for(deadly) is DeadReason.CRASHES_WORKER
        assert {await office.state(each) for each in ids if each != deadly} <= {State.SENT}
        assert max((seen[each] for each in ids if each != deadly), default=1) <= 2
