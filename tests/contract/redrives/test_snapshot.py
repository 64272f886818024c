"""Redrives, snapshot: a redrive sends only dead letters from before its start."""

from datetime import timedelta

from carteiro.model import RedriveState
from carteiro.ports import Backend
from support.builders import sent as was_sent
from support.burying import buried, found
from support.clock import StoreClock
from support.redriving import advanced, shown, started, worked

HOUR = timedelta(hours=1)


async def test_later_dead_letter_stays(backend: Backend, clock: StoreClock) -> None:
    """It may have died of something else."""
    early = await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    clock.advance(HOUR)
    late = await buried(backend)

    await advanced(backend)
    gone = await worked(backend, was_sent())
    await advanced(backend)

    assert gone == [early]
    assert await found(backend) == [late]
    assert (await shown(backend, redrive)).state is RedriveState.FINISHED


async def test_end_of_the_filter_stays_if_it_is_earlier(
    backend: Backend, clock: StoreClock
) -> None:
    """The start is only the latest possible end."""
    early = await buried(backend)
    clock.advance(HOUR)
    await buried(backend)
    clock.advance(HOUR)

    redrive = await started(backend, moved_before=clock.at(-HOUR))
    await advanced(backend)

    assert redrive.wanted.moved_before == clock.at(-HOUR)
    assert await worked(backend, was_sent()) == [early]


async def test_filter_is_kept_whole(backend: Backend, clock: StoreClock) -> None:
    """As it was asked for, over a restart too: it is read from the store."""
    await buried(backend, failure={"code": "421"})
    wanted = await buried(backend, failure={"code": "550", "reason": "mailbox full"})
    await buried(backend, "brasa", failure={"code": "550", "reason": "mailbox full"})
    letter = await backend.dead_letters.show(wanted)
    assert letter is not None
    clock.advance(HOUR)

    redrive = await started(
        backend,
        tenant="acme",
        kind=letter.kind,
        reason=letter.reason,
        code="550",
        category=letter.failure.category,
        text="full",
        group=letter.group,
        moved_after=clock.at(-2 * HOUR),
    )
    await advanced(backend)

    assert (await shown(backend, redrive)).wanted == redrive.wanted
    assert await worked(backend, was_sent()) == [wanted]
