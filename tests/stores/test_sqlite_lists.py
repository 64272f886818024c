"""Lists of messages on SQLite: the reach of a page, and that nothing is missed where it stops."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carteiro.model import EMAIL, Cursor, MessageFilter, MessageId, State, TenantId
from carteiro.ports import Backend
from carteiro.stores.sql.lists import Reach, find_messages
from carteiro.stores.sqlite import SqliteOptions, open_sqlite
from carteiro.stores.sqlite.database import SqliteSession, finished
from support.builders import ACME, BRASA, TASK, a_message, messages, retry, sent, tenants_named
from support.clock import StoreClock
from support.steps import HOLD, accepted, claimed, declare, settled

NEAR = Reach(walk=3, queue=3)
FILE = "post.db"


@pytest.fixture
async def backend(tmp_path: Path, clock: StoreClock) -> AsyncIterator[Backend]:
    """A store in a file, for direct queries."""
    async with open_sqlite(tmp_path / FILE, SqliteOptions(clock=clock)) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


@pytest.fixture
def clock() -> StoreClock:
    """The clock of the store."""
    return StoreClock()


def _pages(folder: Path, *, limit: int = 2, **wanted: Any) -> list[list[MessageId]]:
    """The ids of each page, of a list with the smallest reach."""
    pages: list[list[MessageId]] = []
    cursor: Cursor | None = None
    with closing(sqlite3.connect(folder / FILE)) as db:
        while True:
            page = finished(
                find_messages(
                    SqliteSession(db),
                    MessageFilter(**wanted),
                    cursor=cursor,
                    limit=limit,
                    reach=NEAR,
                )
            )
            assert len(page.rows) == limit or (page.reached is None) == (page.next is None)
            pages.append([row.id for row in page.rows])
            if page.next is None:
                return pages
            cursor = page.next


def _flat(pages: list[list[MessageId]]) -> list[MessageId]:
    return [each for page in pages for each in page]


async def test_walk_without_matches_ends_with_a_cursor(backend: Backend, tmp_path: Path) -> None:
    """A page may be short or empty; the pages after it bring the rest."""
    [old] = await accepted(backend.store, a_message(kind=TASK))
    await accepted(backend.store, *messages(20))

    pages = _pages(tmp_path, kind=TASK)

    assert pages[0] == []
    assert len(pages) > 2
    assert _flat(pages) == [old]


@pytest.mark.parametrize("tenant", [None, ACME])
async def test_attempts_are_found_in_a_long_queue(
    backend: Backend, clock: StoreClock, tmp_path: Path, tenant: TenantId | None
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

    pages = _pages(tmp_path, state=State.SENT_ATTEMPT, tenant=tenant)

    assert _flat(pages) == ids[2::-1]


@pytest.mark.parametrize("scope", [{}, {"tenant": ACME}, {"tenant": ACME, "kind": EMAIL}], ids=str)
async def test_every_state_is_found_in_a_long_queue(
    backend: Backend, tmp_path: Path, scope: dict[str, Any]
) -> None:
    """Short pages add up to the whole list."""
    ids = await accepted(backend.store, *messages(20))
    first, second, *_ = await claimed(backend.store, limit=2)
    await settled(backend.store, first, sent())
    await settled(backend.store, second, retry(HOLD))

    listed = {
        state: _flat(_pages(tmp_path, state=state, **scope))
        for state in (State.SENT, State.RETRY_SCHEDULED, State.ENQUEUED)
    }

    assert listed == {
        State.SENT: [ids[0]],
        State.RETRY_SCHEDULED: [ids[1]],
        State.ENQUEUED: ids[:1:-1],
    }


async def test_tags_of_many_tenants_come_in_one_order(
    backend: Backend, clock: StoreClock, tmp_path: Path
) -> None:
    """Each tenant's are walked separately and merged."""
    ids = []
    for index in range(12):
        tenant = (ACME, BRASA)[index % 3 == 0]
        ids += await accepted(backend.store, a_message(tenant, tags=("spring",)))
        clock.advance(HOLD)

    assert _flat(_pages(tmp_path, tag="spring")) == ids[::-1]
