"""Redrives, isolated: the redrives of a tenant are its own, and are deleted with it."""

from datetime import timedelta

from carteiro.model import Cursor, Redrive
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.builders import sent as was_sent
from support.burying import buried
from support.clock import StoreClock
from support.redriving import advanced, shown, started, worked

HOUR = timedelta(hours=1)


async def test_tenant_finds_only_its_own(backend: Backend) -> None:
    """Neither those of others, nor those of all tenants."""
    own = await started(backend, tenant=ACME)
    others = [await started(backend, tenant=BRASA), await started(backend)]

    assert (await backend.redrives.list(tenant=ACME)).rows == [own]
    assert await backend.redrives.show(own.id, tenant=ACME) == own
    for each in others:
        assert await backend.redrives.show(each.id, tenant=ACME) is None


async def test_pages_have_no_gaps_and_no_duplicates(backend: Backend, clock: StoreClock) -> None:
    """Newest first, also of one moment."""
    made = []
    for number in range(7):
        made.append(await started(backend, tenant=(ACME, BRASA)[number % 2]))
        clock.advance(timedelta(milliseconds=number % 3))

    assert await listed(backend, 2) == made[::-1]
    assert await listed(backend, 1, tenant=ACME) == made[::2][::-1]


async def listed(backend: Backend, limit: int, **whose: str) -> list[Redrive]:
    """All redrives, page by page."""
    rows: list[Redrive] = []
    cursor: Cursor | None = None
    while True:
        page = await backend.redrives.list(cursor=cursor, limit=limit, **whose)  # type: ignore[arg-type]
        rows, cursor = rows + page.rows, page.next
        if cursor is None:
            return rows


async def test_redrive_of_a_tenant_sends_only_its_messages(
    backend: Backend, clock: StoreClock
) -> None:
    """Whatever else is dead."""
    own = await buried(backend, ACME)
    await buried(backend, BRASA)
    clock.advance(HOUR)
    await started(backend, tenant=ACME)

    await advanced(backend)

    assert await worked(backend, was_sent()) == [own]


async def test_each_redrive_advances_in_a_round(backend: Backend, clock: StoreClock) -> None:
    """A long one does not hold up others."""
    for _ in range(12):
        await buried(backend, ACME)
    await buried(backend, BRASA)
    clock.advance(HOUR)
    long, short = await started(backend, tenant=ACME), await started(backend, tenant=BRASA)

    await advanced(backend)

    assert (await shown(backend, long)).course.redriven == 5
    assert (await shown(backend, short)).course.redriven == 1


async def test_redrives_are_deleted_with_their_tenant(backend: Backend, clock: StoreClock) -> None:
    """Those of others, and of all tenants, stay."""
    await buried(backend, ACME)
    clock.advance(HOUR)
    own = await started(backend, tenant=ACME)
    kept = [await started(backend, tenant=BRASA), await started(backend)]
    await advanced(backend)
    erased = await backend.tenants.erase(ACME)
    assert erased is not None
    assert not erased.has_more

    assert await backend.redrives.show(own.id) is None
    assert {each.id for each in (await backend.redrives.list()).rows} == {each.id for each in kept}
