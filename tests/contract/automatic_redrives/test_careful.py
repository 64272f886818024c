"""Automatic redrives, careful: nothing late, doubtful, cancelled or switched off is sent."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from carteiro.model import NewTemplate, RedriveState, State, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message
from support.builders import sent as was_sent
from support.clock import StoreClock
from support.recovering import (
    COOL_DOWN,
    PLAN,
    PROVIDER,
    died,
    letter_of,
    lost,
    ripe,
    start,
    started,
)
from support.redriving import advanced, put_into, sent, shown, worked
from support.steps import accepted, claimed, claimed_and_declared, settled

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


async def test_end_of_life_stays(backend: Backend, clock: StoreClock) -> None:
    """A redrive that somebody asked for starts a new ttl; this one does not, and says who redrove it."""
    message = await lost(backend, ttl=HOUR)
    expires_at = clock.at(HOUR)
    clock.advance(COOL_DOWN)

    await started(backend)
    await advanced(backend)

    found = await backend.reading.message(message)
    assert found is not None
    assert (found.state, found.expires_at, found.round) == (State.ENQUEUED, expires_at, 2)
    [*_, event] = await backend.reading.events(message)
    assert event.metadata["redrivenBy"] == "automatic"
    clock.advance(HOUR - COOL_DOWN)
    assert await backend.upkeep.expire(limit=10) == 1
    letter = await letter_of(backend, message)
    assert (letter.reason, letter.waits_for) == ("expired", None)


async def test_expired_message_is_not_sent(backend: Backend, clock: StoreClock) -> None:
    """Before the start, or between the start and its page."""
    gone = await lost(backend, ttl=COOL_DOWN)
    going = await lost(backend, ttl=COOL_DOWN + SECOND)
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    assert (await letter_of(backend, gone)).waits_for is None
    page, _ = await backend.automatic_redrives.due(redrive, PLAN, limit=10)
    assert page == [going]
    clock.advance(SECOND)

    after = await sent(backend, redrive, *page)

    assert (after.course.redriven, after.course.skipped) == (0, 1)
    assert (await letter_of(backend, going)).waits_for is None
    assert await claimed(backend.store) == []
    await put_into(backend, redrive, RedriveState.CANCELLED)
    await advanced(backend)
    assert await start(backend) is None


async def test_doubt_of_this_round_forbids_it(backend: Backend, clock: StoreClock) -> None:
    """An unknown result earlier in the round: it may have been delivered."""
    message = await lost(backend)
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    await advanced(backend)
    job = await claimed_and_declared(backend.store, provider=PROVIDER)
    await settled(backend.store, job, died(), in_doubt=1)

    letter = await letter_of(backend, message)
    assert (letter.reason, letter.waits_for) == ("in_doubt", None)
    assert (
        await sent(backend, redrive_now := await shown(backend, redrive), message)
    ) != redrive_now
    clock.advance(HOUR)
    assert await ripe(backend) == []


async def test_requested_cancel_forbids_it(backend: Backend, clock: StoreClock) -> None:
    """It came while the last attempt ran."""
    await accepted(backend.store, a_message(ACME))
    job = await claimed_and_declared(backend.store, provider=PROVIDER)
    await backend.store.cancel([job.lease.job], tenant=ACME)
    await settled(backend.store, job, died())
    clock.advance(COOL_DOWN)

    assert await start(backend) is None
    assert await claimed(backend.store) == []


async def test_redrive_by_a_person_wins(backend: Backend, clock: StoreClock) -> None:
    """Before the page, which skips it; an edit is never overwritten."""
    message = await lost(backend)
    clock.advance(COOL_DOWN)
    redrive = await started(backend)
    page, _ = await backend.automatic_redrives.due(redrive, PLAN, limit=10)
    await backend.dead_letters.redrive([message], by="ana")

    after = await sent(backend, redrive, *page)

    assert (after.course.redriven, after.course.skipped) == (0, 1)
    assert await worked(backend, was_sent()) == [message]
    for _ in range(2):
        await advanced(backend)
    assert (await shown(backend, redrive)).state is RedriveState.FINISHED
    assert await backend.dead_letters.show(message) is None


async def test_tenant_or_type_can_be_switched_off(backend: Backend, clock: StoreClock) -> None:
    """For a tenant, or for a template type by its newest version; neither is looked at again."""
    for version_is_on in (True, False):
        new = NewTemplate(ACME, "code", "Code", text="1", automatic_redrive=version_is_on)
        await backend.templates.define(new)
    code = await lost(backend, template_type="code")
    await lost(backend, BRASA)
    await _switched(backend, BRASA, automatic_redrive=False)
    clock.advance(COOL_DOWN)
    assert await ripe(backend) == [ACME, BRASA]
    assert [await start(backend, each) for each in (ACME, BRASA)] == [None, None]
    assert await backend.automatic_redrives.providers() == []

    other = await lost(backend, template_type="welcome")
    clock.advance(COOL_DOWN)
    await started(backend)
    await advanced(backend)
    assert await worked(backend, was_sent()) == [other]
    assert (await letter_of(backend, code)).automatic_rounds == 0


async def test_held_tenant_keeps_its_turn(backend: Backend, clock: StoreClock) -> None:
    """Its dead letters wait until it is resumed, also if it is paused in the middle."""
    messages = [await lost(backend) for _ in range(8)]
    clock.advance(COOL_DOWN)
    for switch in ("paused", "disabled"):
        await _switched(backend, ACME, **{switch: True})
        assert await ripe(backend) == [], switch
        await _switched(backend, ACME, **{switch: False})
    redrive = await started(backend)
    await advanced(backend)
    assert len(await worked(backend, was_sent())) == 5
    await _switched(backend, ACME, paused=True)
    for _ in range(3):
        await advanced(backend)
    assert (await shown(backend, redrive)).state is RedriveState.FINISHED
    await _switched(backend, ACME, paused=False)

    again = await started(backend)

    assert again.total == 3
    await advanced(backend)
    done = {*await worked(backend, was_sent())}
    assert len(done) == 3
    assert done < {*messages}


async def test_erased_tenant_leaves_nothing_to_redrive(backend: Backend, clock: StoreClock) -> None:
    """Nor does a purge, nor one that is past its time to live."""
    await lost(backend)
    await lost(backend, BRASA)
    clock.advance(COOL_DOWN)
    await started(backend)
    while (erased := await backend.tenants.erase(TenantId(ACME))) is not None:
        if not erased.has_more:
            break
    assert await ripe(backend) == [BRASA]
    [letter] = (await backend.dead_letters.find()).rows
    await backend.dead_letters.drop([letter.id])

    assert await backend.automatic_redrives.providers() == []
    assert await advanced(backend) == 0


async def _switched(backend: Backend, tenant: str, **changes: Any) -> None:
    await backend.tenants.change(TenantId(tenant), lambda known: replace(known, **changes))
