"""Wake: any event that makes a job ready, in this process or another, ends the wait."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeAlias

import pytest

from carteiro.model import EMAIL, SendLimit
from carteiro.ports import Backend
from support.builders import ACME, TASK, a_message, a_task, a_tenant, dead, messages, retry, sent
from support.clock import StoreClock, past
from support.set_ups import Place
from support.steps import (
    LEASE,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    settled,
)

LONG = timedelta(seconds=20)  # a wait that ends by itself fails the test by its time limit
SOON = 5.0
Act: TypeAlias = Callable[[], Awaitable[object]]


async def _quiet(backend: Backend) -> None:
    """Wait until no earlier event wakes anybody any more."""
    while await backend.wake.wait(timedelta(milliseconds=50), since=backend.wake.rings()):
        pass


async def _waiting(backend: Backend) -> "asyncio.Future[bool]":
    """A wait that has begun. A notification of what happened before may come late and end it: then again."""
    while True:
        await _quiet(backend)
        waiting = asyncio.ensure_future(backend.wake.wait(LONG, since=backend.wake.rings()))
        await asyncio.sleep(0.01)
        if not waiting.done():
            return waiting


async def _assert_wakes(backend: Backend, act: Act) -> None:
    waiting = await _waiting(backend)

    await act()

    async with asyncio.timeout(SOON):
        assert await waiting


async def test_accepted_message_wakes(backend: Backend) -> None:
    """The shortest way from accept to claim."""
    await _assert_wakes(backend, lambda: accepted(backend.store, a_message()))


async def test_due_retry_wakes(backend: Backend) -> None:
    """A settled job that is ready again is work."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)

    await _assert_wakes(backend, lambda: settled(backend.store, job, retry()))


async def test_settled_job_wakes_a_tenant_at_its_cap(backend: Backend) -> None:
    """The freed slot lets another job through."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)

    await _assert_wakes(backend, lambda: settled(backend.store, job, sent()))
    assert len(await claimed(backend.store)) == 1


async def test_cancelled_job_wakes_a_tenant_at_its_cap(backend: Backend) -> None:
    """A claimed job that is cancelled frees its slot like one that ended."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, *messages(2))
    [job] = await claimed(backend.store)

    await _assert_wakes(backend, lambda: backend.store.cancel([job.lease.job], tenant=ACME))
    assert len(await claimed(backend.store)) == 1


async def test_expired_job_wakes_a_tenant_at_its_cap(backend: Backend, clock: StoreClock) -> None:
    """A claimed job that expires frees its slot like one that ended."""
    await backend.tenants.define([a_tenant(cap=1)])
    await accepted(backend.store, a_message(ttl=LEASE / 2), a_message())
    await claimed(backend.store)
    clock.advance(LEASE / 2)

    await _assert_wakes(backend, lambda: backend.upkeep.expire(limit=10))
    assert len(await claimed(backend.store)) == 1


async def test_released_job_wakes(backend: Backend) -> None:
    """Another worker may take it."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)

    await _assert_wakes(backend, lambda: backend.store.release([job.lease]))


async def test_reaped_job_wakes(backend: Backend, clock: StoreClock) -> None:
    """The job of a vanished worker is work."""
    await accepted(backend.store, a_message())
    await claimed_alone(backend.store)
    clock.advance(past(LEASE))

    await _assert_wakes(backend, lambda: backend.store.reap(limit=10))


async def test_redriven_message_wakes(backend: Backend) -> None:
    """It is sent at once."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())

    await _assert_wakes(backend, lambda: backend.dead_letters.redrive([message], by="ana"))


@pytest.mark.parametrize(
    "held_back",
    [{"paused": True}, {"cap": 1}, {"rate_per_second": 0.001}],
    ids=["resume", "cap lifted", "rate lifted"],
)
async def test_resumed_tenant_wakes(backend: Backend, held_back: dict[str, float]) -> None:
    """A resume or a lifted limit is not missed."""
    await backend.tenants.define([a_tenant(ACME, **held_back)])
    await accepted(backend.store, *messages(2))
    await claimed(backend.store)

    await _assert_wakes(backend, lambda: backend.tenants.define([a_tenant(ACME)]))
    assert await claimed(backend.store) != []


async def test_lifted_send_limit_wakes(backend: Backend) -> None:
    """For all waiters."""
    await backend.tenants.limit(EMAIL, SendLimit(1, timedelta(hours=1)))
    await accepted(backend.store, *messages(2))
    await claimed(backend.store)

    await _assert_wakes(backend, lambda: backend.tenants.limit(EMAIL, None))
    assert len(await claimed(backend.store)) == 1


async def test_work_that_came_before_the_wait_ends_it_at_once(backend: Backend) -> None:
    """Between an empty claim and the wait nothing is missed."""
    await _quiet(backend)
    before = backend.wake.rings()
    assert await claimed(backend.store) == []
    await accepted(backend.store, a_message())

    async with asyncio.timeout(SOON):
        first = await backend.wake.wait(LONG, since=before)
        second = await backend.wake.wait(LONG, since=before)

    assert (first, second) == (True, True), "one who was woken takes nobody's wake-up with it"


async def test_every_waiter_is_woken(backend: Backend) -> None:
    """Each pool of a worker waits separately."""
    await _quiet(backend)
    rings = backend.wake.rings()
    waiting = [asyncio.ensure_future(backend.wake.wait(LONG, since=rings)) for _ in range(3)]
    await asyncio.sleep(0.01)
    await accepted(backend.store, a_message())

    async with asyncio.timeout(SOON):
        assert await asyncio.gather(*waiting) == [True] * 3


async def test_accepted_message_wakes_those_who_wait_for_its_kind(place: Place) -> None:
    """Accepted by this process or by another, after a message of another kind."""
    async with place.opened() as ours, place.opened() as theirs:
        for opener in (ours, theirs):
            await _quiet(ours)
            rings = ours.wake.rings()
            waiting = ours.wake.wait(LONG, since=rings, kinds=[TASK])
            await accepted(opener.store, a_message())
            await accepted(opener.store, a_task())

            async with asyncio.timeout(SOON):
                assert await waiting


async def test_messages_of_several_kinds_wake_those_who_wait_for_any(backend: Backend) -> None:
    """They are accepted together, in one list."""
    await _quiet(backend)
    rings = backend.wake.rings()
    waiting = [backend.wake.wait(LONG, since=rings, kinds=[kind]) for kind in (EMAIL, TASK)]
    await accepted(backend.store, a_message(), a_task())

    async with asyncio.timeout(SOON):
        assert await asyncio.gather(*waiting) == [True] * 2


async def test_wait_without_work_ends_at_its_timeout(backend: Backend) -> None:
    """False says that nothing happened."""
    await _quiet(backend)

    soon = timedelta(milliseconds=20)
    assert not await backend.wake.wait(soon, since=backend.wake.rings())


async def test_cancelled_wait_keeps_the_others_waiting(backend: Backend) -> None:
    """A worker that stops takes no wake-up from others."""
    await _quiet(backend)
    given_up = asyncio.ensure_future(backend.wake.wait(LONG, since=backend.wake.rings()))
    waiting = asyncio.ensure_future(backend.wake.wait(LONG, since=backend.wake.rings()))
    await asyncio.sleep(0.01)
    given_up.cancel()
    await accepted(backend.store, a_message())

    async with asyncio.timeout(SOON):
        assert await waiting


async def test_work_of_another_opener_wakes(place: Place) -> None:
    """A message accepted by one process is sent by another without delay."""
    async with place.opened() as one, place.opened() as other:
        await _assert_wakes(one, lambda: accepted(other.store, a_message()))
        assert len(await claimed(one.store)) == 1


async def test_resume_by_another_opener_wakes(place: Place) -> None:
    """A tenant resumed on one machine's command line is served by another's worker."""
    async with place.opened() as one, place.opened() as other:
        await other.tenants.define([a_tenant(ACME, paused=True)])
        await accepted(other.store, a_message())
        assert await claimed(one.store) == []

        await _assert_wakes(one, lambda: other.tenants.define([a_tenant(ACME)]))
        assert len(await claimed(one.store)) == 1


async def test_every_message_of_another_process_wakes(place: Place) -> None:
    """Not only the first: the state of the one before does not matter."""
    async with place.opened() as ours, place.opened() as theirs:
        for _ in range(3):
            await _assert_wakes(ours, lambda: accepted(theirs.store, a_message()))
            await settled(ours.store, await claimed_alone(ours.store), sent())
            assert await claimed(ours.store) == []
            place.clock.advance(timedelta(seconds=6))


async def test_work_of_other_workers_hides_no_own_work(place: Place) -> None:
    """A task whose workers are elsewhere waits for long, and an e-mail wakes all the same."""
    async with place.opened() as ours, place.opened() as theirs:
        await accepted(theirs.store, a_task())
        await _quiet(ours)
        place.clock.advance(timedelta(seconds=6))
        assert await claimed(ours.store, kinds=[EMAIL]) == []

        await _assert_wakes(ours, lambda: accepted(theirs.store, a_message()))
