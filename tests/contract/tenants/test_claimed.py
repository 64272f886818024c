"""Tenants, claimed: a domain of ``from_domains`` is one tenant's alone."""

import asyncio

import pytest

from carteiro.errors import DomainClaimed
from carteiro.model import Tenant, TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_tenant, tenants_named


async def test_domain_of_another_tenant_is_refused(backend: Backend) -> None:
    """In any spelling; the rest of the call is not applied, too."""
    await backend.tenants.define([a_tenant(from_domains=("açaí.example",))])
    wanted = a_tenant(BRASA, name="Brasa", from_domains=("brasa.example", "XN--AA-4IAZ.Example"))

    with pytest.raises(DomainClaimed, match=r"açaí\.example is claimed by tenant 'acme'"):
        await backend.tenants.define([*tenants_named(["new"]), wanted])

    assert await backend.tenants.find([BRASA, TenantId("new")]) == [a_tenant(BRASA), None]
    assert await backend.tenants.claimants(["açaí.example", "brasa.example"]) == [ACME, None]


async def test_tenant_keeps_its_domain_through_changes(backend: Backend) -> None:
    """A change of another field, of its tier's weight, or of its list takes nothing from it."""
    await backend.tenants.weigh_tier("gold", 2.0)
    own = ("acme.example", "mail.acme.example")
    await backend.tenants.define([a_tenant(tier="gold", from_domains=own)])

    await backend.tenants.define([a_tenant(tier="gold", paused=True, from_domains=own[:1])])
    await backend.tenants.weigh_tier("gold", 3.0)
    await backend.tenants.ensure([ACME])

    assert await backend.tenants.claimants(own) == [ACME, None]


async def test_released_domain_is_free(backend: Backend) -> None:
    """Released before, in the same call, or by an erasure."""
    domain = "acme.example"
    await backend.tenants.define([a_tenant(from_domains=(domain,))])
    await backend.tenants.define([a_tenant()])
    owners = await backend.tenants.claimants([domain])

    await backend.tenants.define([a_tenant(BRASA, from_domains=(domain,))])
    await backend.tenants.define([a_tenant(from_domains=(domain,)), a_tenant(BRASA)])
    owners += await backend.tenants.claimants([domain])
    await backend.tenants.erase(ACME)
    owners += await backend.tenants.claimants([domain])

    assert owners == [None, ACME, None]


async def test_two_tenants_of_one_call_cannot_have_one_domain(backend: Backend) -> None:
    """Neither of them has it then."""
    both = [a_tenant(each, from_domains=("acme.example",)) for each in (ACME, BRASA)]

    with pytest.raises(DomainClaimed):
        await backend.tenants.define(both)

    assert await backend.tenants.claimants(["acme.example"]) == [None]


async def test_concurrent_claims_of_a_domain_have_one_winner(backend: Backend) -> None:
    """The others are refused."""
    rivals = [Tenant(TenantId(f"rival-{n}"), from_domains=("acme.example",)) for n in range(8)]

    answers = await asyncio.gather(
        *(backend.tenants.define([each]) for each in rivals), return_exceptions=True
    )

    [winner] = [each.id for each, answer in zip(rivals, answers, strict=True) if answer is None]
    assert sum(isinstance(each, DomainClaimed) for each in answers) == len(rivals) - 1
    assert await backend.tenants.claimants(["acme.example"]) == [winner]
    found = await backend.tenants.find([each.id for each in rivals])
    assert [each.id for each in found if each is not None] == [winner]
