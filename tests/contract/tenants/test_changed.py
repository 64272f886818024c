"""Tenants, changed: a change of some fields keeps the others, also if they are changed at the same moment."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from carteiro.errors import DomainClaimed, TierUnknown
from carteiro.model import Tenant, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_tenant, messages
from support.steps import accepted, claimed_tenants


async def _change(backend: Backend, **fields: Any) -> Tenant | None:
    return await backend.tenants.change(ACME, lambda stored: replace(stored, **fields))


async def test_concurrent_changes_of_fields_are_all_kept(backend: Backend) -> None:
    """One who pauses a tenant does not undo that another one disables it."""
    switches = ({"disabled": True}, {"paused": True}, {"weight": 4.0}, {"cap": 7}, {"name": "Acme"})

    await asyncio.gather(*(_change(backend, **each) for each in switches))

    every = a_tenant(disabled=True, paused=True, weight=4.0, cap=7, name="Acme")
    assert await backend.tenants.find([ACME]) == [every]


async def test_change_is_made_of_what_is_stored(backend: Backend) -> None:
    """And returned as it was written."""
    await backend.tenants.define([a_tenant(cap=7, from_domains=("acme.example",))])

    paused = await _change(backend, paused=True)

    assert paused == a_tenant(cap=7, from_domains=("acme.example",), paused=True)
    assert await backend.tenants.find([ACME]) == [paused]
    assert await backend.tenants.claimants(["acme.example"]) == [ACME]


async def test_change_applies_to_waiting_jobs_at_once(backend: Backend) -> None:
    """As by `define`."""
    await accepted(backend.store, *messages(2))
    await _change(backend, paused=True)
    while_paused = await claimed_tenants(backend.store)
    await _change(backend, paused=False)

    assert while_paused == []
    assert await claimed_tenants(backend.store) == [ACME, ACME]


async def test_unknown_tenant_is_not_created(backend: Backend) -> None:
    """A change that comes after the erasure of a tenant does not bring it back."""
    nobody = TenantId("nobody")

    assert await backend.tenants.change(nobody, lambda stored: stored) is None
    assert await backend.tenants.find([nobody]) == [None]


async def test_refused_change_changes_nothing(backend: Backend) -> None:
    """Refused by its maker, or as `define` refuses it."""
    await backend.tenants.define([a_tenant(BRASA, from_domains=("brasa.example",))])

    def refused(stored: Tenant) -> Tenant:
        raise LookupError(stored.id)

    with pytest.raises(LookupError, match=ACME):
        await backend.tenants.change(ACME, refused)
    with pytest.raises(ValueError, match="cap"):
        await _change(backend, name="Acme", cap=0)
    with pytest.raises(TierUnknown):
        await _change(backend, name="Acme", tier="gold")
    with pytest.raises(DomainClaimed):
        await _change(backend, name="Acme", from_domains=("brasa.example",))

    assert await backend.tenants.find([ACME]) == [a_tenant()]
