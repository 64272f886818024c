"""Audit, kept: rows outlive what they are about, until their retention is over."""

from datetime import timedelta

from carteiro.model import Actor, AuditFilter, Via
from carteiro.ports import Backend
from carteiro.ports.audit import Audit
from carteiro.ports.upkeep import Kept
from carteiro.runtime.acting import acting_as
from support.builders import ACME, a_tenant
from support.clock import MILLISECOND, StoreClock
from support.set_ups import Place

A_DAY = timedelta(days=1)
KEPT = Kept(audit=A_DAY)
ANA = Actor(Via.CLI, "ana", "host")


async def count(backend: Backend) -> int:
    """The number of Ana's rows."""
    return len((await backend.audit.list(AuditFilter(who="ana"))).rows)


async def test_rows_of_an_erased_tenant_stay(backend: Backend) -> None:
    """Also the one about its erasure."""
    with acting_as(ANA):
        await backend.tenants.define([a_tenant(cap=3)])
        while (erased := await backend.tenants.erase(ACME)) and erased.has_more:
            pass

    found = (await backend.audit.list(AuditFilter(tenant=ACME, who="ana"))).rows
    assert [row.action for row in found] == ["erase", "disable", "set"]


async def test_rows_are_deleted_after_their_retention(backend: Backend, clock: StoreClock) -> None:
    """At its end, a page at a time; without a retention, never."""
    with acting_as(ANA):
        for cap in range(1, 6):
            await backend.tenants.define([a_tenant(cap=cap)])
    clock.advance(A_DAY - MILLISECOND)
    await backend.upkeep.prune(bodies=None, histories=None, kept=KEPT)
    await backend.upkeep.prune(bodies=None, histories=None)
    before = await count(backend)
    clock.advance(MILLISECOND)
    with acting_as(ANA):
        await backend.tenants.define([a_tenant(cap=9)])

    pages = 1
    while (await backend.upkeep.prune(bodies=None, histories=None, kept=KEPT, limit=2)).has_more:
        pages += 1

    assert before == 5
    assert await count(backend) == 1
    assert pages > 1


async def test_their_deletion_is_a_row(backend: Backend, clock: StoreClock) -> None:
    """In the same transaction; nothing to delete leaves none."""
    before = len((await backend.audit.list(AuditFilter())).rows)
    clock.advance(A_DAY)
    with acting_as(ANA):
        by_ana = [await _pruned(backend) for _ in range(2)]
    clock.advance(A_DAY)
    with acting_as(Actor(Via.UPKEEP, "upkeep", "host")):
        by_upkeep = [await _pruned(backend) for _ in range(2)]

    [row] = (await backend.audit.list(AuditFilter())).rows
    assert (by_ana, by_upkeep) == ([before, 0], [1, 0])
    assert (row.who, row.action, row.kind) == ("upkeep", "prune", "audit")
    assert row.after == {"auditMs": 86_400_000}


async def test_deletion_by_a_person_has_its_number(backend: Backend, clock: StoreClock) -> None:
    """So nobody clears the record without a trace."""
    before = len((await backend.audit.list(AuditFilter())).rows)
    clock.advance(A_DAY)
    with acting_as(ANA):
        await _pruned(backend)

    [row] = (await backend.audit.list(AuditFilter())).rows
    assert (row.who, row.action, row.kind) == ("ana", "prune", "audit")
    assert row.after == {"auditMs": 86_400_000, "count": before}


async def _pruned(backend: Backend) -> int:
    return (await backend.upkeep.prune(bodies=None, histories=None, kept=KEPT)).audit


async def test_rows_are_there_for_the_next_opener(place: Place) -> None:
    """They outlive the process that wrote them."""
    async with place.opened() as first:
        with acting_as(ANA):
            await first.tenants.define([a_tenant(cap=3)])

    async with place.opened() as second:
        assert await count(second) == 1


def test_port_has_no_way_to_change_a_row() -> None:
    """It adds and lists; nothing else."""
    assert {name for name in vars(Audit) if not name.startswith("_")} == {"note", "list"}
