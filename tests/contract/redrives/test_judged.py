"""Redrives, judged: the result of each message is counted once."""

from datetime import timedelta

from carteiro.model import CancelAnswer, RedriveResult, RedriveState
from carteiro.ports import Backend
from support.builders import ACME, dead, retry
from support.builders import sent as was_sent
from support.burying import buried
from support.clock import StoreClock
from support.redriving import advanced, sent, shown, started, worked
from support.steps import claimed_and_declared

HOUR = timedelta(hours=1)
PATIENCE = timedelta(minutes=10)


async def test_message_is_watched_until_it_ends(backend: Backend, clock: StoreClock) -> None:
    """With the provider of its last attempt."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await sent(backend, await started(backend), message)

    _, [waits] = await backend.redrives.watched(redrive, limit=10)
    await claimed_and_declared(backend.store, provider="smtp")
    _, [flies] = await backend.redrives.watched(redrive, limit=10)

    assert (waits.message, waits.run, waits.at, waits.result) == (message, 1, clock(), None)
    assert (flies.result, flies.provider) == (None, "smtp")


async def test_each_end_is_a_result(backend: Backend, clock: StoreClock) -> None:
    """Sent, dead again, or cancelled."""
    first, second, third = [await buried(backend) for _ in range(3)]
    clock.advance(HOUR)
    redrive = await sent(backend, await started(backend), first)
    await worked(backend, was_sent())
    redrive = await sent(backend, redrive, second)
    await worked(backend, dead())
    redrive = await sent(backend, redrive, third)
    assert await backend.store.cancel([third], tenant=ACME) == [CancelAnswer.CANCELLED]

    _, watched = await backend.redrives.watched(redrive, limit=10)
    await advanced(backend)

    assert {each.message: each.result for each in watched} == {
        first: RedriveResult.SENT,
        second: RedriveResult.FAILED,
        third: RedriveResult.CANCELLED,
    }
    course = (await shown(backend, redrive)).course
    assert (course.sent, course.failed, course.cancelled, course.watched) == (1, 1, 1, 0)


async def test_result_is_counted_once(backend: Backend, clock: StoreClock) -> None:
    """Two processes see the same end; the second one's course is refused."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await sent(backend, await started(backend), message)
    await worked(backend, was_sent())
    await advanced(backend)
    counted = await shown(backend, redrive)

    refused = await backend.redrives.judge(redrive, [(message, RedriveResult.SENT)], redrive.course)
    await advanced(backend)

    assert refused is None
    assert counted.course.sent == (await shown(backend, redrive)).course.sent == 1


async def test_message_that_does_not_end_is_late(backend: Backend, clock: StoreClock) -> None:
    """It is not waited for; whatever it becomes later."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    await advanced(backend)
    await worked(backend, retry(HOUR))
    await advanced(backend)
    waiting = await shown(backend, redrive)
    clock.advance(PATIENCE)
    await advanced(backend)
    late = await shown(backend, redrive)
    clock.advance(HOUR)
    assert await worked(backend, was_sent()) == [message]
    await advanced(backend)

    assert (waiting.state, waiting.course.watched) == (RedriveState.RUNNING, 1)
    assert (late.course.late, late.course.watched) == (1, 0)
    assert (await shown(backend, redrive)).state is RedriveState.FINISHED


async def test_deleted_message_is_no_longer_watched(backend: Backend, clock: StoreClock) -> None:
    """Its tenant was erased."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await sent(backend, await started(backend), message)
    await backend.tenants.erase(ACME)

    await advanced(backend)

    course = (await shown(backend, redrive)).course
    assert (course.cancelled, course.watched) == (1, 0)
