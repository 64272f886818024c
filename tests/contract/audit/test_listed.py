"""Audit, listed: pages without gaps and duplicates, newest first; a filter finds all that match."""

from datetime import timedelta
from typing import Any

import pytest

from carteiro.errors import BadCursor
from carteiro.model import Actor, AuditFilter, AuditRow, Cursor, Via
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as
from support.builders import ACME, BRASA, a_tenant
from support.clock import StoreClock


async def _filled(backend: Backend, clock: StoreClock) -> list[AuditRow]:
    for number in range(6):
        with acting_as(Actor(Via.CLI, ("ana", "bia")[number % 2], "host")):
            tenant = (ACME, BRASA)[number % 3 == 0]
            await backend.tenants.define([a_tenant(tenant, cap=number + 1)])
            await backend.tenants.weigh_tier("gold", number + 2.0)
        if number % 2:
            clock.advance(timedelta(seconds=1))
    return (await backend.audit.list(AuditFilter(action="set"), limit=500)).rows


async def _walked(backend: Backend, wanted: AuditFilter, size: int) -> list[AuditRow]:
    rows: list[AuditRow] = []
    cursor: Cursor | None = None
    while True:
        page = await backend.audit.list(wanted, cursor=cursor, limit=size)
        rows += page.rows
        cursor = page.next
        if cursor is None:
            return rows


async def test_pages_have_no_gaps(backend: Backend, clock: StoreClock) -> None:
    """Whatever their size, also between rows of one moment; newest first."""
    every = await _filled(backend, clock)

    assert len(every) == 12
    assert [row.at for row in every] == sorted((row.at for row in every), reverse=True)
    for size in (1, 2, 5, 12, 13):
        assert await _walked(backend, AuditFilter(action="set"), size) == every, size


async def test_filters_find_all_that_match(backend: Backend, clock: StoreClock) -> None:
    """Alone and together."""
    every = await _filled(backend, clock)
    since = clock.at() - timedelta(seconds=2)
    filters: list[dict[str, Any]] = [
        {"who": "ana"},
        {"kind": "tenant"},
        {"object": "gold"},
        {"tenant": BRASA},
        {"who": "bia", "tenant": ACME},
        {"who": "bia", "kind": "tier", "object": "gold"},
        {"action": "none"},
        {"since": since},
    ]
    for wanted in filters:
        names = {name: each for name, each in wanted.items() if name != "since"}
        matching = [
            row
            for row in every
            if all(getattr(row, name) == each for name, each in names.items())
            and row.at >= wanted.get("since", row.at)
        ]
        found = await _walked(backend, AuditFilter(**{"action": "set"} | wanted), 2)
        assert found == matching, wanted


async def test_own_rows_of_a_tenant_begin_with_it(backend: Backend, clock: StoreClock) -> None:
    """Those of a former tenant with its id are for administrators of all tenants."""
    await backend.tenants.define([a_tenant(cap=3)])
    while (erased := await backend.tenants.erase(ACME)) and erased.has_more:
        pass
    clock.advance(timedelta(seconds=1))
    await backend.tenants.define([a_tenant(cap=4)])
    await backend.tenants.define([a_tenant(cap=5)])

    own = await _walked(backend, AuditFilter(tenant=ACME, is_own=True), 1)
    every = await _walked(backend, AuditFilter(tenant=ACME), 1)
    assert [row.action for row in own] == ["set", "add"]
    assert "erase" in {row.action for row in every}


async def test_cursor_of_another_list_is_refused(backend: Backend) -> None:
    """With the usual error."""
    with pytest.raises(BadCursor):
        await backend.audit.list(AuditFilter(), cursor=Cursor("nonsense"))
