"""Redrives, obeyed: after the answer to a pause or a cancel no message is sent; each is an audit row."""

from datetime import timedelta

from carteiro.model import AuditFilter, RedriveState, Via
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as, on_this_machine
from support.builders import dead
from support.builders import sent as was_sent
from support.burying import buried
from support.clock import StoreClock
from support.redriving import advanced, put_into, sent, shown, started, worked

HOUR = timedelta(hours=1)
RUNNING, PAUSED, STOPPED = RedriveState.RUNNING, RedriveState.PAUSED, RedriveState.STOPPED
CANCELLED, FINISHED = RedriveState.CANCELLED, RedriveState.FINISHED


async def test_nothing_is_sent_after_a_pause_or_a_cancel(
    backend: Backend, clock: StoreClock
) -> None:
    """Not by a process either that read the redrive before."""
    message = await buried(backend)
    clock.advance(HOUR)
    for state in (PAUSED, CANCELLED):
        redrive = await started(backend)
        after = await put_into(backend, redrive, state)

        assert await backend.redrives.send(redrive, [message], redrive.course) is None
        assert await backend.redrives.send(after, [message], after.course) is None
        await advanced(backend)
        assert await worked(backend, was_sent()) == []
        assert (await shown(backend, redrive)).state is state


async def test_resumed_redrive_continues_with_a_canary(backend: Backend, clock: StoreClock) -> None:
    """Where it was; failures from before do not count for it."""
    every = [await buried(backend) for _ in range(12)]
    clock.advance(HOUR)
    redrive = await started(backend)
    await advanced(backend)
    await worked(backend, dead())
    await advanced(backend)
    stopped = await shown(backend, redrive)
    clock.advance(HOUR)

    resumed = await put_into(backend, redrive, RUNNING)
    await advanced(backend)
    again = await worked(backend, was_sent())

    assert stopped.state is STOPPED
    assert stopped.reason == "5 of 5 failed again, more than 20%."
    assert (resumed.reason, resumed.course.run, resumed.course.step_failed) == (None, 2, 0)
    assert again == every[2:7][::-1] or sorted(again) == every[2:7]
    assert (await shown(backend, redrive)).course.redriven == 10


async def test_only_allowed_changes_are_made(backend: Backend) -> None:
    """An ended redrive stays ended; nothing else changes either."""
    allowed = {
        RUNNING: {PAUSED, STOPPED, CANCELLED, FINISHED},
        PAUSED: {RUNNING, CANCELLED},
        STOPPED: {RUNNING, CANCELLED},
        CANCELLED: set(),
        FINISHED: set(),
    }
    for state, after in allowed.items():
        for asked in RedriveState:
            redrive = await started(backend)
            if state is not RUNNING:
                await put_into(backend, redrive, state)
            before = await shown(backend, redrive)
            changed = await backend.redrives.set(redrive.id, asked)
            assert changed is not None
            assert changed.state is (asked if asked in after else state), (state, asked)
            if asked not in after:
                assert await shown(backend, redrive) == before, (state, asked)
            await backend.redrives.set(redrive.id, CANCELLED)


async def test_change_for_another_version_is_refused(backend: Backend, clock: StoreClock) -> None:
    """Upkeep decided by what it had read; a person was faster."""
    message = await buried(backend)
    clock.advance(HOUR)
    redrive = await started(backend)
    after = await sent(backend, redrive, message)

    refused = await backend.redrives.set(redrive.id, STOPPED, version=redrive.version)

    assert refused is None
    assert await shown(backend, redrive) == after


async def test_every_change_is_an_audit_row(backend: Backend) -> None:
    """With the filter and the pace at the start; a text that may be an address is left out."""
    redrive = await started(backend, tenant="acme", code="550", text="ana@example.com")
    for state in (PAUSED, RUNNING, STOPPED, CANCELLED):
        await put_into(backend, redrive, state)

    rows = (await backend.audit.list(AuditFilter(object=redrive.id))).rows

    assert sorted(row.action for row in rows) == ["cancel", "pause", "resume", "start", "stop"]
    assert {(row.kind, row.tenant) for row in rows} == {("redrive", "acme")}
    [start] = [row for row in rows if row.action == "start"]
    assert start.after["wanted"]["code"] == "550"
    assert start.after["wanted"]["text"] is True
    assert start.after["canary"] == 5


async def test_each_stop_of_a_day_is_an_audit_row(backend: Backend) -> None:
    """By upkeep, for the same reason and with the same numbers."""
    redrive = await started(backend)
    for _ in range(2):
        with acting_as(on_this_machine(Via.UPKEEP, "upkeep")):
            await backend.redrives.set(redrive.id, STOPPED, reason="The circuit is open.")
        await put_into(backend, redrive, RUNNING)

    rows = (await backend.audit.list(AuditFilter(object=redrive.id))).rows

    assert sorted(row.action for row in rows) == ["resume", "resume", "start", "stop", "stop"]


async def test_ended_redrive_keeps_no_text(backend: Backend) -> None:
    """It may be an address of somebody who is erased later."""
    redrive = await started(backend, text="ana@example.com")

    await put_into(backend, redrive, PAUSED)
    paused = await shown(backend, redrive)
    await put_into(backend, redrive, CANCELLED)

    assert paused.wanted.text == "ana@example.com"
    assert (await shown(backend, redrive)).wanted.text == ""
