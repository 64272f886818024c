"""Failures, isolated: a tenant sees its own part of a group, which is deleted with it."""

from dataclasses import replace

from carteiro.model import NOTICES, FailureFilter, GroupState, TenantFailures, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.failing import FULL_ID, HOUR, UNKNOWN, UNKNOWN_ID, died, failed, folded, group_in


async def test_tenant_sees_only_its_own_part(backend: Backend, clock: StoreClock) -> None:
    """Counts, times, hours and samples; folded or not. Groups of others are not there."""
    await died(backend, clock, BRASA, failure=UNKNOWN)
    await died(backend, clock, BRASA)
    clock.advance(HOUR)
    begun = clock.at()
    own = [await failed(backend, clock), await died(backend, clock)]
    clock.advance(HOUR)
    await died(backend, clock, BRASA)

    for _ in range(2):
        page = await backend.failures.list(FailureFilter(tenant=ACME))
        report = await backend.failures.show(FULL_ID, tenant=ACME)
        assert report is not None
        [group] = page.rows
        assert group == report.group
        assert (group.id, group.attempts, group.deaths) == (FULL_ID, 2, 1)
        assert group.first_seen == group.opened_at == begun
        assert [(each.attempts, each.deaths) for each in report.hours] == [(2, 1)]
        assert report.tenants == [TenantFailures(ACME, 2, 1)]
        assert report.samples == own[::-1]
        assert await backend.failures.show(UNKNOWN_ID, tenant=ACME) is None
        await folded(backend)


async def test_tenant_sees_no_code_and_no_opening_of_others(
    backend: Backend, clock: StoreClock
) -> None:
    """They are of the tenant that failed last; of a group that is its own alone, it sees them."""
    await died(backend, clock, failure=UNKNOWN)
    await folded(backend)
    alone = await group_in(backend, UNKNOWN_ID, ACME)
    await backend.failures.move(UNKNOWN_ID, GroupState.RESOLVED)
    clock.advance(HOUR)
    await died(backend, clock, BRASA, failure=replace(UNKNOWN, code="CODE_OF_BRASA"))

    for _ in range(2):
        shared = await group_in(backend, UNKNOWN_ID, ACME)
        assert (shared.code, shared.opened_at) == ("", alone.first_seen)
        assert "CODE_OF_BRASA" not in shared.cause
        await folded(backend)
    assert alone.code == UNKNOWN.code


async def test_state_is_that_of_the_group(backend: Backend, clock: StoreClock) -> None:
    """The cause is the same for all."""
    await failed(backend, clock)
    await failed(backend, clock, BRASA)
    await backend.failures.move(FULL_ID, GroupState.ACKNOWLEDGED)

    group = await group_in(backend, tenant=BRASA)
    assert (group.state, group.attempts) == (GroupState.ACKNOWLEDGED, 1)


async def test_own_notices_are_in_no_group(backend: Backend, clock: StoreClock) -> None:
    """Folded or not: a mail about trouble is not the trouble."""
    await backend.tenants.ensure([NOTICES])
    await died(backend, clock, NOTICES, failure=UNKNOWN)
    await died(backend, clock, NOTICES)
    await died(backend, clock)

    for _ in range(2):
        [group] = (await backend.failures.list()).rows
        assert (group.id, group.attempts, group.deaths) == (FULL_ID, 1, 1)
        await folded(backend)


async def test_unknown_tenant_has_no_groups(backend: Backend, clock: StoreClock) -> None:
    """Its list is empty, not that of all."""
    await failed(backend, clock)
    wanted = FailureFilter(tenant=TenantId("nobody"))

    for _ in range(2):
        assert (await backend.failures.list(wanted)).rows == []
        assert (await backend.failures.list(FailureFilter(tenant=TenantId("")))).rows == []
        await folded(backend)


async def test_erased_tenant_leaves_no_part(backend: Backend, clock: StoreClock) -> None:
    """Neither counts nor samples; totals stay, and a new tenant of the same name starts at zero."""
    await died(backend, clock)
    await folded(backend)
    kept = await died(backend, clock, BRASA)
    await died(backend, clock)
    erased = await backend.tenants.erase(ACME)
    assert erased is not None
    assert not erased.has_more

    assert (await backend.failures.list(FailureFilter(tenant=ACME))).rows == []
    report = await backend.failures.show(FULL_ID)
    assert report is not None
    assert report.samples == [kept]
    assert report.tenants == [TenantFailures(BRASA, 1, 1), TenantFailures(None, 2, 2)]
