"""Redrives, once: a message goes at most once; messages and progress are stored together or not at all."""

from datetime import timedelta

from carteiro.model import RedriveState
from carteiro.ports import Backend
from support.builders import ACME, BRASA, dead
from support.burying import buried, found
from support.clock import StoreClock
from support.redriving import advanced, sent, shown, started, worked
from support.steps import attempted, claimed, claimed_and_declared, claimed_ids, settled

HOUR = timedelta(hours=1)


async def test_page_of_messages_is_redriven_and_counted(
    backend: Backend, clock: StoreClock
) -> None:
    """Each has a new round by the requester, a marked entry, and a job that can be claimed."""
    first, second, other = [await buried(backend) for _ in range(3)]
    clock.advance(HOUR)
    redrive = await started(backend)

    after = await sent(backend, redrive, first, second)

    assert (after.course.redriven, after.course.skipped, after.course.step_redriven) == (2, 0, 2)
    assert await shown(backend, redrive) == after
    assert await found(backend, is_redriven=False) == [other]
    assert sorted(await claimed_ids(backend.store)) == [first, second]
    [*_, event] = await backend.reading.events(first)
    assert event.metadata["redrivenBy"] == "ana"


async def test_same_page_again_changes_nothing(backend: Backend, clock: StoreClock) -> None:
    """The second process has read the redrive before the first one stored its page."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    after = await sent(backend, redrive, message)

    assert await backend.redrives.send(redrive, [message], redrive.course) is None
    assert await shown(backend, redrive) == after


async def test_message_that_died_again_is_not_sent_again(
    backend: Backend, clock: StoreClock
) -> None:
    """Not even if its entry is older than the start, because a clock went back."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    redrive = await sent(backend, redrive, message)
    job = await claimed_and_declared(backend.store)
    clock.back(2 * HOUR)
    await settled(backend.store, job, dead())
    clock.advance(2 * HOUR)
    assert await found(backend, is_redriven=False, moved_before=redrive.started_at) == [message]

    after = await sent(backend, redrive, message)

    assert (after.course.redriven, after.course.skipped) == (1, 1)
    assert await claimed(backend.store) == []


async def test_other_redrive_sends_a_message_that_died_again(
    backend: Backend, clock: StoreClock
) -> None:
    """Once each."""
    message = await buried(backend)
    clock.advance(HOUR)
    await sent(backend, await started(backend), message)
    await attempted(backend.store, dead())
    clock.advance(HOUR)

    after = await sent(backend, await started(backend), message)

    assert after.course.redriven == 1


async def test_message_without_an_end_is_skipped(backend: Backend, clock: StoreClock) -> None:
    """Somebody else redrove it."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    await backend.dead_letters.redrive([message], by="rui")

    after = await sent(backend, redrive, message)

    assert (after.course.redriven, after.course.skipped) == (0, 1)
    assert await backend.redrives.watched(after, limit=10) == (clock(), [])


async def test_all_go_once_and_the_redrive_finishes(backend: Backend, clock: StoreClock) -> None:
    """Of all tenants; those that die again are not sent again, and their number is known."""
    every = [await buried(backend, each) for each in (ACME, BRASA) for _ in range(2)]
    clock.advance(HOUR)
    redrive = await started(backend)

    tried = []
    for _ in range(3):
        await advanced(backend)
        tried += await worked(backend, dead())
    after = await shown(backend, redrive)

    assert sorted(tried) == sorted(every)
    assert after.state is RedriveState.FINISHED
    assert (after.course.redriven, after.course.failed) == (4, 4)
