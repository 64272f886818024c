"""Failures, moved: a state stays until somebody changes it, and a resolved group opens with the next failure."""

import pytest

from carteiro.model import AuditFilter, GroupState
from carteiro.ports import Backend
from support.clock import StoreClock
from support.failing import FULL_ID, HOUR, died, failed, folded, group_in


async def _rows(backend: Backend) -> list[tuple[str, object, object]]:
    page = await backend.audit.list(AuditFilter(kind="failure group"))
    return [(row.action, row.before["state"], row.after["state"]) for row in reversed(page.rows)]


@pytest.mark.parametrize("state", [GroupState.ACKNOWLEDGED, GroupState.IGNORED])
async def test_state_stays_when_it_recurs(
    backend: Backend, clock: StoreClock, state: GroupState
) -> None:
    """Its counts go on."""
    await failed(backend, clock)
    moved = await backend.failures.move(FULL_ID, state)
    await died(backend, clock)

    for _ in range(2):
        group = await group_in(backend)
        assert (group.state, group.attempts) == (state, 2)
        await folded(backend)
    assert moved is not None
    assert (moved.state, moved.attempts) == (state, 1)


async def test_resolved_group_opens_when_it_recurs(backend: Backend, clock: StoreClock) -> None:
    """With the first failure of the new episode; the first one of all is kept."""
    start = clock.at()
    await failed(backend, clock)
    resolved = await backend.failures.move(FULL_ID, GroupState.RESOLVED)
    clock.advance(HOUR)
    again = clock.at()
    await failed(backend, clock)
    await died(backend, clock)

    for _ in range(2):
        group = await group_in(backend)
        assert (group.state, group.opened_at) == (GroupState.OPEN, again)
        assert (group.first_seen, group.attempts) == (start, 3)
        await folded(backend, limit=1)
    assert resolved is not None
    assert resolved.resolved_at == group.resolved_at


async def test_resolved_group_cannot_be_acknowledged(backend: Backend, clock: StoreClock) -> None:
    """It would stay acknowledged when it recurs, and nobody would hear of it."""
    await failed(backend, clock)
    await backend.failures.move(FULL_ID, GroupState.RESOLVED)
    refused = await backend.failures.move(FULL_ID, GroupState.ACKNOWLEDGED)
    clock.advance(HOUR)
    await failed(backend, clock)

    assert refused is not None
    assert refused.state is GroupState.RESOLVED
    assert (await group_in(backend)).state is GroupState.OPEN
    assert [row[0] for row in await _rows(backend)] == ["resolve"]


async def test_failure_before_the_resolution_does_not_open(
    backend: Backend, clock: StoreClock
) -> None:
    """A note that is folded later is still older."""
    await failed(backend, clock)
    await folded(backend)
    await failed(backend, clock)
    await backend.failures.move(FULL_ID, GroupState.RESOLVED)
    await folded(backend)

    group = await group_in(backend)
    assert (group.state, group.attempts) == (GroupState.RESOLVED, 2)


async def test_change_of_a_recurring_group_is_about_the_new_episode(
    backend: Backend, clock: StoreClock
) -> None:
    """Also if nobody has folded its failure yet."""
    await failed(backend, clock)
    await backend.failures.move(FULL_ID, GroupState.RESOLVED)
    clock.advance(HOUR)
    again = clock.at()
    await failed(backend, clock)
    clock.advance(HOUR)
    await backend.failures.move(FULL_ID, GroupState.ACKNOWLEDGED)

    group = await group_in(backend)
    assert (group.state, group.opened_at) == (GroupState.ACKNOWLEDGED, again)
    assert {row[0] for row in await _rows(backend)} == {"resolve", "reopen", "acknowledge"}


async def test_every_change_has_an_audit_row(backend: Backend, clock: StoreClock) -> None:
    """Of people and of upkeep, each time; a change to the same state is none."""
    await failed(backend, clock)
    for _ in range(2):
        await backend.failures.move(FULL_ID, GroupState.ACKNOWLEDGED)
        for _ in range(2):
            await backend.failures.move(FULL_ID, GroupState.RESOLVED)
        clock.advance(HOUR)
        await failed(backend, clock)
        await failed(backend, clock)
        await folded(backend)
        clock.advance(HOUR)
    await backend.failures.move(FULL_ID, GroupState.IGNORED)

    assert await _rows(backend) == [
        ("acknowledge", "open", "acknowledged"),
        ("resolve", "acknowledged", "resolved"),
        ("reopen", "resolved", "open"),
        ("acknowledge", "open", "acknowledged"),
        ("resolve", "acknowledged", "resolved"),
        ("reopen", "resolved", "open"),
        ("ignore", "open", "ignored"),
    ]
