"""Audit, harmless: no content, no address, no secret and no control character, whatever a name holds."""

import pytest

from carteiro.model import Actor, AuditFilter, NewSuppression, SuppressionReason, TenantId, Via
from carteiro.policy.audit import LONGEST
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as
from support.builders import ACME, a_tenant
from support.steps import added_key
from support.templates import defined

ADDRESS, TOKEN = "ana.secret@example.com", "ca_0123456789abcdefghij"
ODD = "a\r\nb\x1b[31m\u202e\x7f\ud800"


async def everything(backend: Backend) -> str:
    """All rows, as text."""
    page = await backend.audit.list(AuditFilter(), limit=500)
    return "\n".join(str(row) for row in page.rows)


async def test_no_address_and_no_secret_gets_into_a_row(backend: Backend) -> None:
    """Not as a sender, a name, a type, a tenant, an actor, or as the object of a change."""
    tenant = TenantId(ADDRESS)
    with acting_as(Actor(Via.CLI, ADDRESS, f"host {TOKEN}")):
        await backend.tenants.define(
            [a_tenant(tenant, name=TOKEN, default_from=ADDRESS, contact=ADDRESS)]
        )
        await backend.tenants.define([a_tenant(ACME, name=f"{ADDRESS} {TOKEN}")])
        await backend.tenants.weigh_tier(TOKEN, 2.0)
        await defined(backend, ADDRESS, subject=f"{TOKEN} {ADDRESS}")
        await added_key(backend, TOKEN, name=f"key of {ADDRESS}")
        suppressed = [NewSuppression(ADDRESS, SuppressionReason.MANUAL)]
        await backend.suppressions.put(suppressed, tenant=ACME)
        await backend.suppressions.remove([ADDRESS], tenant=ACME)
        await backend.audit.note(
            "set",
            "thing",
            f"x {TOKEN}",
            round=0,
            before={"field": [ADDRESS]},
            after={"field": {"at": TOKEN}},
        )

    written = await everything(backend)
    assert "ana.secret" not in written
    assert TOKEN not in written
    assert "hidden-" in written
    # A row is still found by what it hides.
    assert len((await backend.audit.list(AuditFilter(object=ADDRESS, kind="template"))).rows) == 1
    assert len((await backend.audit.list(AuditFilter(tenant=tenant))).rows) == 1


async def test_odd_names_are_printable_in_a_row(backend: Backend) -> None:
    """Line breaks, colours of terminals, reversed text and half characters are escaped: a row stays one line."""
    with acting_as(Actor(Via.CLI, ODD, ODD)):
        await backend.audit.note("set", "thing", ODD, round=0, before={"field": ODD})

    [row] = (await backend.audit.list(AuditFilter(kind="thing"))).rows
    for text in (row.who, row.origin, row.object, row.before["field"]):
        assert text.isprintable()
        assert text.startswith("a\\r\\nb\\x1b[31m")


@pytest.mark.parametrize("size", [LONGEST, LONGEST + 1, 1_000_000])
async def test_long_names_are_cut(backend: Backend, size: int) -> None:
    """A megabyte of a name does not fill the store."""
    name, many = "ä" * size, [f"n{number}" for number in range(1000)]
    with acting_as(Actor(Via.CLI, name, name)):
        await backend.audit.note("set", "thing", name, round=0, after={"field": name, "list": many})

    [row] = (await backend.audit.list(AuditFilter(kind="thing"))).rows
    assert {len(row.who), len(row.object), len(row.after["field"])} == {LONGEST}
    assert len(row.after["list"]) == 20
    assert (row.who == name) is (size == LONGEST)
