"""Tenants, closed: a disabled tenant accepts nothing, and what waits is held until it is enabled again."""

from datetime import timedelta

from carteiro.model import Settled, State, TenantDisabled
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, a_tenant, messages, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    LEASE,
    accepted,
    claim,
    claimed,
    claimed_alone,
    claimed_ids,
    claimed_tenants,
    settled,
)


async def test_disabled_tenant_accepts_nothing(backend: Backend) -> None:
    """Nothing of it is written, and others of the batch are accepted; enabled, it accepts again."""
    new = a_message()
    await backend.tenants.define([a_tenant(disabled=True)])

    refused, _ = await backend.store.accept([new, a_message(BRASA)])
    await backend.tenants.define([a_tenant()])

    assert refused == TenantDisabled(ACME)
    assert await backend.reading.message(new.id) is None
    await accepted(backend.store, new)


async def test_waiting_messages_are_held_and_come_back(backend: Backend) -> None:
    """Between two claims: nothing while disabled, everything after, in its order; others go on."""
    waiting = await accepted(backend.store, *messages(6))
    await accepted(backend.store, *messages(2, BRASA))
    await backend.tenants.define([a_tenant(disabled=True)])
    disabled = await claimed_tenants(backend.store)

    await backend.tenants.define([a_tenant()])

    assert disabled == [BRASA, BRASA]
    assert await claimed_ids(backend.store) == waiting


async def test_newly_due_messages_are_held_too(backend: Backend, clock: StoreClock) -> None:
    """Retries, expired leases and scheduled messages wait, and wake nobody."""
    later = clock.at(timedelta(minutes=1))
    await accepted(backend.store, *messages(2), a_message(due=later))
    first, _ = await claimed(backend.store)
    await settled(backend.store, first, retry(timedelta(minutes=1)))
    await backend.tenants.define([a_tenant(disabled=True)])
    clock.advance(past(LEASE + timedelta(minutes=1)))

    held = await claim(backend.store)
    await backend.tenants.define([a_tenant()])

    assert (held.jobs, held.idle_for) == ([], None)
    assert len(await claimed(backend.store)) == 3


async def test_messages_in_flight_end_as_usual(backend: Backend) -> None:
    """A begun attempt is neither lost nor made twice."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    await backend.tenants.define([a_tenant(disabled=True)])

    assert await settled(backend.store, job, sent()) == Settled(State.SENT)


async def test_paused_tenant_that_is_enabled_stays_paused(backend: Backend) -> None:
    """Either holds by itself: messages come back when neither does."""
    await accepted(backend.store, a_message())
    got = []
    for disabled, paused in ((True, True), (False, True), (True, False), (False, False)):
        await backend.tenants.define([a_tenant(disabled=disabled, paused=paused)])
        got.append(len(await claimed(backend.store)))

    assert got == [0, 0, 0, 1]


async def test_change_of_its_tier_does_not_enable_it(backend: Backend) -> None:
    """A tenant is reconsidered when its weight changes, and is still held."""
    await backend.tenants.weigh_tier("gold", 1.0)
    await backend.tenants.define([a_tenant(tier="gold")])
    await accepted(backend.store, a_message())
    await backend.tenants.define([a_tenant(tier="gold", disabled=True)])

    await backend.tenants.weigh_tier("gold", 2.0)

    assert await claimed(backend.store) == []
    assert await backend.tenants.find([ACME]) == [a_tenant(tier="gold", disabled=True)]


async def test_ensuring_a_tenant_does_not_enable_it(backend: Backend) -> None:
    """A sender finds it disabled, at any number of tries."""
    await backend.tenants.define([a_tenant(disabled=True)])

    await backend.tenants.ensure([ACME])

    assert await backend.store.accept([a_message()]) == [TenantDisabled(ACME)]
