"""Lists of messages on Postgres: the reach of a page, and its index with any statistics."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from carteiro.model import EMAIL, Cursor, MessageFilter, MessageId, State, TenantId
from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, open_postgres
from carteiro.stores.postgres.database import Database, Session, sql
from carteiro.stores.sql.lists import Reach, find_messages
from support.builders import ACME, BRASA, TASK, a_message, messages, retry, sent, tenants_named
from support.clock import StoreClock
from support.steps import HOLD, accepted, claimed, declare, settled

pytestmark = pytest.mark.servers

NEAR = Reach(walk=3, queue=3)


@pytest.fixture
def clock() -> StoreClock:
    """The clock of the store."""
    return StoreClock()


@pytest.fixture
async def backend(url: str, clock: StoreClock) -> AsyncIterator[Backend]:
    """A store that knows two tenants."""
    async with open_postgres(url, PostgresOptions(clock=clock)) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    """The same database, for direct queries."""
    opened = Database(url, PostgresOptions())
    await opened.open()
    yield opened
    await opened.close()


async def _pages(db: Database, *, limit: int = 2, **wanted: Any) -> list[list[MessageId]]:
    """The ids of each page, of a list with the smallest reach."""
    pages: list[list[MessageId]] = []
    cursor: Cursor | None = None
    while True:
        look = partial(
            find_messages, wanted=MessageFilter(**wanted), cursor=cursor, limit=limit, reach=NEAR
        )
        page = await db.read(look)
        assert len(page.rows) == limit or (page.reached is None) == (page.next is None)
        pages.append([row.id for row in page.rows])
        if page.next is None:
            return pages
        cursor = page.next


def _flat(pages: list[list[MessageId]]) -> list[MessageId]:
    return [each for page in pages for each in page]


async def test_walk_without_matches_ends_with_a_cursor(backend: Backend, db: Database) -> None:
    """A page may be short or empty; the pages after it bring the rest."""
    [old] = await accepted(backend.store, a_message(kind=TASK))
    await accepted(backend.store, *messages(20))

    pages = await _pages(db, kind=TASK)

    assert pages[0] == []
    assert len(pages) > 2
    assert _flat(pages) == [old]


@pytest.mark.parametrize("tenant", [None, ACME])
async def test_attempts_are_found_in_a_long_queue(
    backend: Backend, clock: StoreClock, db: Database, tenant: TenantId | None
) -> None:
    """Held, lost, and released by a later claimer: without reading the rest of the queue."""
    ids = await accepted(backend.store, *messages(20))
    for job in await claimed(backend.store, limit=3):
        await declare(backend.store, job)
    clock.advance(2 * HOLD)
    await backend.store.reap(limit=10)
    again, *_ = await claimed(backend.store, limit=1)  # a suspect, alone
    await backend.store.release([again.lease], wait=HOLD)
    for job in await claimed(backend.store, limit=1):
        await declare(backend.store, job)

    pages = await _pages(db, state=State.SENT_ATTEMPT, tenant=tenant)

    assert _flat(pages) == ids[2::-1]


@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}, {"tenant": ACME, "kind": EMAIL}], ids=str)
async def test_every_state_is_found_in_a_long_queue(
    backend: Backend, db: Database, scope: dict[str, Any]
) -> None:
    """Short pages add up to the whole list."""
    ids = await accepted(backend.store, *messages(20))
    first, second, *_ = await claimed(backend.store, limit=2)
    await settled(backend.store, first, sent())
    await settled(backend.store, second, retry(HOLD))

    listed = {
        state: _flat(await _pages(db, state=state, **scope))
        for state in (State.SENT, State.RETRY_SCHEDULED, State.ENQUEUED)
    }

    assert listed == {
        State.SENT: [ids[0]],
        State.RETRY_SCHEDULED: [ids[1]],
        State.ENQUEUED: ids[:1:-1],
    }


async def test_tags_of_many_tenants_come_in_one_order(
    backend: Backend, clock: StoreClock, db: Database
) -> None:
    """Each tenant's are walked separately and merged."""
    ids = []
    for index in range(12):
        tenant = (ACME, BRASA)[index % 3 == 0]
        ids += await accepted(backend.store, a_message(tenant, tags=("spring",)))
        clock.advance(HOLD)

    assert _flat(await _pages(db, tag="spring")) == ids[::-1]


# --- plans ------------------------------------------------------------------------------------

_SPAN: tuple[object, ...] = (0, 1, 1, 10)
_LED_BY: dict[str, tuple[str, tuple[object, ...]]] = {
    "walk_all": ("messages_by_age", _SPAN),
    "walk_emails": ("emails_of_tenant", ("acme", *_SPAN)),
    "walk_external_id": ("messages_by_external_id", (["acme"], "order-1", *_SPAN)),
    "walk_provider_id": ("entries_by_provider_id", (["acme"], "taken-1", *_SPAN)),
    "walk_recipient": ("messages_of_recipient", (["r-1"], *_SPAN)),
    "walk_sent": ("entries_sent", ("acme", *_SPAN)),
    "walk_tag": ("message_tags_pkey", (["acme"], "spring", *_SPAN)),
    "walk_tasks": ("tasks_of_tenant", ("acme", *_SPAN)),
    "walk_to": ("messages_to", (["acme"], "ana@example.com", *_SPAN)),
    "walk_unlucky": ("entries_unlucky", ("acme", *_SPAN)),
}
_PUT_TOGETHER = {"walk_external_id", "walk_provider_id", "walk_recipient", "walk_tag", "walk_to"}
_WITHOUT_A_SORT = sorted(_LED_BY.keys() - _PUT_TOGETHER)


async def _plan(session: Session, operation: str, parameters: tuple[object, ...]) -> str:
    rows = await session.connection.fetch(f"EXPLAIN {sql(operation)}", *parameters)
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("operation", sorted(_LED_BY))
async def test_walk_follows_an_index_in_its_order(db: Database, operation: str) -> None:
    """The statistics say that the tables are empty, so that any plan would look good."""
    index, parameters = _LED_BY[operation]
    async with db.transaction() as session:
        await session.fetch("by_index")
        plan = await _plan(session, operation, parameters)

    assert f"using {index} " in plan, plan
    assert "Index Cond" in plan, plan
    assert "Seq Scan" not in plan, plan
    if operation in _WITHOUT_A_SORT:
        assert "Sort" not in plan, plan


async def test_depths_use_indexes_alone(db: Database) -> None:
    """The first job of a seat and priority is found without reading those behind it."""
    async with db.transaction() as session:
        await session.fetch("by_index")
        plan = await _plan(session, "depths", (1, 1))

    for index in ("ready_pkey", "delayed_of_seat", "leased_by_end"):
        assert index in plan, plan
    for table in ("ready", "delayed", "leased", "entries"):
        assert f"Seq Scan on {table}" not in plan, plan
