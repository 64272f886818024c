"""Tenants, listed: pages follow each other without gaps or duplicates."""

import pytest

from carteiro.model import ApiLimits, Page, Tenant
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_tenant, tenants_named


async def _pages(backend: Backend, *, limit: int) -> list[Page[Tenant]]:
    pages = [await backend.tenants.list(limit=limit)]
    while (cursor := pages[-1].next) is not None:
        pages.append(await backend.tenants.list(cursor=cursor, limit=limit))
    return pages


@pytest.mark.parametrize(("limit", "sizes"), [(2, [2, 2, 1]), (5, [5]), (100, [5])])
async def test_every_tenant_is_on_one_page(backend: Backend, limit: int, sizes: list[int]) -> None:
    """By id, with any page size; the last one has no cursor."""
    await backend.tenants.define(tenants_named(["zeta", "ágata", "Delta"]))

    pages = await _pages(backend, limit=limit)

    assert [len(page.rows) for page in pages] == sizes
    listed = [tenant.id for page in pages for tenant in page.rows]
    assert listed == ["Delta", ACME, BRASA, "zeta", "ágata"]


async def test_tenant_is_listed_as_it_was_defined(backend: Backend) -> None:
    """With all its fields."""
    full = a_tenant(
        name="Acme Ltda",
        disabled=True,
        default_from="post@acme.example",
        from_domains=("acme.example", "açaí.example"),
        allowed_networks=("10.0.0.0/8", "2001:db8::/32"),
        limits=ApiLimits(1, None, 0),
        retry_preset="classic",
        external_id_is_key=True,
        automatic_redrive=False,
        contact="ops@acme.example",
    )
    await backend.tenants.define([full])

    assert (await backend.tenants.list()).rows == [full, a_tenant(BRASA)]
    assert await backend.tenants.find([ACME]) == [full]


async def test_new_tenants_move_no_page(backend: Backend) -> None:
    """A page starts behind the last tenant of the one before."""
    first = await backend.tenants.list(limit=1)
    await backend.tenants.define(tenants_named(["aaron", "bento"]))

    second = await backend.tenants.list(cursor=first.next)

    assert [tenant.id for tenant in first.rows] == [ACME]
    assert [tenant.id for tenant in second.rows] == ["bento", BRASA]
