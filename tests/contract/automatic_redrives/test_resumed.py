"""Automatic redrives, resumed: killed anywhere and repeated, each dead letter counts a round once."""

from carteiro.model import AutomaticPlan, MessageId, Redrive, RedriveState
from carteiro.ports import Backend
from support.builders import ACME
from support.clock import StoreClock
from support.recovering import COOL_DOWN, PLAN, died, letter_of, lost, ripe, started
from support.redriving import advanced, shown, worked


async def _stopped(backend: Backend, clock: StoreClock) -> tuple[Redrive, list[MessageId]]:
    """An automatic redrive that its canary stopped, and the messages that it did not send."""
    messages = [await lost(backend) for _ in range(9)]
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    await advanced(backend)
    tried = await worked(backend, died())
    await advanced(backend)
    stopped = await shown(backend, redrive)
    assert stopped.state is RedriveState.STOPPED
    return stopped, [each for each in messages if each not in tried]


async def test_postponing_again_counts_no_second_round(backend: Backend, clock: StoreClock) -> None:
    """A page at a time; the process that continues after a kill finds the rest."""
    redrive, left = await _stopped(backend, clock)
    automatic = backend.automatic_redrives

    assert await automatic.postpone(redrive, PLAN, limit=3)
    rounds = [(await letter_of(backend, each)).automatic_rounds for each in left]
    assert sorted(rounds) == [0, 1, 1, 1]
    clock.advance(COOL_DOWN)
    while await automatic.postpone(redrive, PLAN, limit=3):
        pass
    assert not await automatic.postpone(redrive, PLAN, limit=3)

    assert {(await letter_of(backend, each)).automatic_rounds for each in left} == {1}
    for _ in range(3):
        await advanced(backend)
    assert await backend.redrives.due() == []
    assert (await shown(backend, redrive)).state is RedriveState.FINISHED


async def test_clock_that_steps_back_counts_no_second_round(
    backend: Backend, clock: StoreClock
) -> None:
    """The cool-down begins after the start of the redrive, whatever the clock says."""
    redrive, left = await _stopped(backend, clock)
    clock.back(COOL_DOWN * 2)

    for _ in range(2):
        assert not await backend.automatic_redrives.postpone(redrive, PLAN, limit=10)

    assert {(await letter_of(backend, each)).automatic_rounds for each in left} == {1}


async def test_dismissing_again_changes_nothing(backend: Backend, clock: StoreClock) -> None:
    """A page at a time, and only what it did not send."""
    redrive, left = await _stopped(backend, clock)
    automatic = backend.automatic_redrives

    assert await automatic.dismiss(redrive, PLAN, limit=3)
    while await automatic.dismiss(redrive, PLAN, limit=3):
        pass
    assert not await automatic.dismiss(redrive, PLAN, limit=3)

    assert {(await letter_of(backend, each)).waits_for for each in left} == {None}
    clock.advance(4 * COOL_DOWN)
    for _ in range(3):
        await advanced(backend)
    assert await ripe(backend) == [ACME]  # the five that it sent


async def test_letters_of_the_last_round_wait_no_more(backend: Backend, clock: StoreClock) -> None:
    """Those of a redrive that stops, too."""
    last = AutomaticPlan(rounds=1)
    redrive, left = await _stopped(backend, clock)

    assert not await backend.automatic_redrives.postpone(redrive, last, limit=10)

    assert {(await letter_of(backend, each)).waits_for for each in left} == {None}
