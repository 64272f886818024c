"""Automatic redrives, waiting: what waits for its provider, for how long, and how often."""

from dataclasses import replace
from datetime import timedelta

from carteiro.model import Category, DeadReason, RedriveState, Scope
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.builders import sent as was_sent
from support.burying import buried
from support.clock import StoreClock
from support.recovering import (
    COOL_DOWN,
    PLAN,
    PROVIDER,
    cool_downs,
    died,
    letter_of,
    lost,
    outage,
    ripe,
    start,
    started,
)
from support.redriving import advanced, put_into, shown, worked
from support.steps import attempted

MILLISECOND = timedelta(milliseconds=1)
EIGHT = 8


async def test_only_passing_failures_of_a_provider_wait(
    backend: Backend, clock: StoreClock
) -> None:
    """Everything else is left to people."""
    others = {
        "recipient": died(outage(scope=Scope.RECIPIENT)),
        "destination": died(outage(scope=Scope.DESTINATION)),
        "settings": died(outage(category=Category.CONFIGURATION_ERROR)),
        "for good": died(outage(retryable=False)),
        "permanent": died(reason=DeadReason.PERMANENT_ERROR),
        "in doubt": died(reason=DeadReason.IN_DOUBT),
        "expired": died(reason=DeadReason.EXPIRED),
        "crash": died(reason=DeadReason.CRASHES_WORKER),
        "invalid": died(reason=DeadReason.VALIDATION_FAILED),
    }
    categories = (Category.TRANSIENT_ERROR, Category.TIMEOUT_ERROR, Category.QUOTA_ERROR)
    for category in categories:
        message = await lost(backend, BRASA, verdict=died(outage(category=category)))
        letter = await letter_of(backend, message)
        assert (letter.waits_for, letter.waits_since) == (PROVIDER, clock.at()), category
    for name, verdict in others.items():
        letter = await letter_of(backend, await lost(backend, verdict=verdict))
        assert (letter.waits_for, letter.waits_since) == (None, None), name
    task = await buried(backend, kind="report", reason=DeadReason.MAX_ATTEMPTS_EXCEEDED)  # type: ignore[arg-type]
    clock.advance(COOL_DOWN)

    assert (await letter_of(backend, task)).waits_for is None
    assert await backend.automatic_redrives.providers() == [PROVIDER]
    assert await ripe(backend) == [BRASA]
    assert await start(backend, ACME) is None


async def test_tenant_is_ripe_when_its_cool_down_is_over(
    backend: Backend, clock: StoreClock
) -> None:
    """Each provider by itself."""
    assert await backend.automatic_redrives.providers() == []
    await lost(backend, provider="ses")
    clock.advance(MILLISECOND)
    await lost(backend, BRASA)
    clock.advance(COOL_DOWN - MILLISECOND)

    assert await backend.automatic_redrives.providers() == ["ses", PROVIDER]
    assert (await ripe(backend, "ses"), await ripe(backend)) == ([ACME], [])
    clock.advance(MILLISECOND)
    assert (await ripe(backend, "ses"), await ripe(backend)) == ([ACME], [BRASA])


async def test_each_round_has_a_longer_cool_down_and_the_last_one_is_the_last(
    backend: Backend, clock: StoreClock
) -> None:
    """5, 20 and 80 minutes; then people decide, unless they give it another round."""
    message = await lost(backend)
    assert [PLAN.cool_down_after(done) for done in range(3)] == [
        timedelta(minutes=each) for each in (5, 20, 80)
    ]

    for done, cool_down in enumerate(cool_downs(), 1):
        clock.advance(cool_down - MILLISECOND)
        assert await ripe(backend) == [], done
        clock.advance(MILLISECOND)
        redrive = await started(backend)
        await advanced(backend)
        assert await worked(backend, died()) == [message], done
        while (await shown(backend, redrive)).state is RedriveState.RUNNING:
            await advanced(backend)
        await advanced(backend)
        assert (await letter_of(backend, message)).automatic_rounds == done

    clock.advance(timedelta(hours=12))
    assert await start(backend) is None
    assert await ripe(backend) == []  # it is found and judged once
    assert (await letter_of(backend, message)).waits_for is None
    assert await backend.automatic_redrives.providers() == []
    await backend.dead_letters.redrive([message], by="ana")
    await attempted(backend.store, died(), provider=PROVIDER)
    letter = await letter_of(backend, message)
    assert (letter.waits_for, letter.automatic_rounds) == (PROVIDER, 0)


async def test_automatic_redrive_sends_what_has_cooled_down(
    backend: Backend, clock: StoreClock
) -> None:
    """The first ones first, and nothing that died since, nor of another tenant or provider."""
    mine = [await lost(backend) for _ in range(EIGHT)]
    await lost(backend, BRASA)
    await lost(backend, provider="ses")
    clock.advance(MILLISECOND)
    late = await lost(backend)
    clock.advance(PLAN.cool_down - MILLISECOND)
    assert await start(backend, "nobody") is None

    redrive = await started(backend)

    assert (redrive.tenant, redrive.provider, redrive.by) == (ACME, PROVIDER, "automatic")
    assert redrive.total == EIGHT
    tried = []
    for _ in range(9):
        await advanced(backend)
        tried += await worked(backend, was_sent())
        clock.advance(timedelta(seconds=1))
    assert sorted(tried) == sorted(mine)
    after = await shown(backend, redrive)
    assert (after.state, after.course.sent) == (RedriveState.FINISHED, EIGHT)
    assert (await letter_of(backend, late)).automatic_rounds == 0


async def test_failing_canary_costs_all_of_them_a_round(
    backend: Backend, clock: StoreClock
) -> None:
    """Those that it did not send cool down, too: longer than before."""
    messages = [await lost(backend) for _ in range(EIGHT)]
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    await advanced(backend)
    tried = await worked(backend, died())
    for _ in range(4):
        await advanced(backend)
    after = await shown(backend, redrive)

    assert len(tried) == 5
    assert after.state is RedriveState.FINISHED
    assert after.reason == "5 of 5 failed again, more than 20%."
    assert {(await letter_of(backend, each)).automatic_rounds for each in messages} == {1}
    clock.advance(cool_downs()[1] - MILLISECOND)
    assert await ripe(backend) == []
    clock.advance(MILLISECOND)
    assert await ripe(backend) == [ACME]


async def test_slow_messages_cost_no_round(backend: Backend, clock: StoreClock) -> None:
    """They only wait for their turn: another one continues."""
    messages = [await lost(backend) for _ in range(EIGHT)]
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    await advanced(backend)
    clock.advance(timedelta(minutes=10))
    for _ in range(2):
        await advanced(backend)

    after = await shown(backend, redrive)
    assert (after.state, after.course.late) == (RedriveState.FINISHED, 5)
    rounds = [(await letter_of(backend, each)).automatic_rounds for each in messages]
    assert sorted(rounds) == [0, 0, 0, 1, 1, 1, 1, 1]
    assert (await started(backend)).total == 3


async def test_imported_dead_letter_waits_for_nobody(backend: Backend, clock: StoreClock) -> None:
    """Somebody took it out, and put it back."""
    message = await lost(backend)
    letter = await letter_of(backend, message)
    await backend.dead_letters.drop([message])
    assert await backend.automatic_redrives.providers() == []

    await backend.dead_letters.restore([letter])
    clock.advance(COOL_DOWN)

    assert (await letter_of(backend, message)).waits_for is None
    assert await ripe(backend) == []


async def test_cancelled_automatic_redrive_leaves_the_rest_to_people(
    backend: Backend, clock: StoreClock
) -> None:
    """It does not start again; a paused one blocks the next, and can be resumed."""
    messages = [await lost(backend) for _ in range(EIGHT)]
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    await advanced(backend)
    await put_into(backend, redrive, RedriveState.PAUSED)
    await advanced(backend)
    assert await start(backend) is None
    await put_into(backend, redrive, RedriveState.RUNNING)
    await put_into(backend, redrive, RedriveState.CANCELLED)
    for _ in range(3):
        await advanced(backend)

    waiting = [(await letter_of(backend, each)).waits_for for each in messages]
    assert waiting.count(None) == 3  # those that were not sent
    assert await ripe(backend) == []
    assert await backend.redrives.due() == []


async def test_fewer_rounds_or_none_end_the_waiting(backend: Backend, clock: StoreClock) -> None:
    """As the settings of the day say."""
    message = await lost(backend)
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    await advanced(backend)
    await worked(backend, died())
    await advanced(backend)
    await advanced(backend)
    assert (await shown(backend, redrive)).state is RedriveState.FINISHED

    one_round = replace(PLAN, rounds=1)
    assert await ripe(backend, plan=one_round) == [ACME]
    assert await start(backend, plan=one_round) is None
    assert (await letter_of(backend, message)).waits_for is None
