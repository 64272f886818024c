"""Moving jobs between a separate queue and the store itself: nothing is lost."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from carteiro.model import EMAIL, LeasedJob, Start
from carteiro.ports import Backend
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.postgres import PostgresOptions, open_postgres, open_postgres_ledger
from carteiro.stores.sqlite import SqliteOptions, open_sqlite, open_sqlite_ledger
from support.builders import ACME, BRASA, a_claim_id, a_message, messages, sent, tenants_named
from support.clock import StoreClock, past
from support.set_ups import postgres_url
from support.steps import HOLD, accepted, attempted, claimed_ids, claimed_tenants

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Ways:
    """One location, opened as a whole store and as a ledger alone."""

    whole: Callable[[], AbstractAsyncContextManager[Backend]]
    ledger: Callable[[], AbstractAsyncContextManager[LedgerHalf]]


def _in_a_file(folder: Path, clock: StoreClock) -> Ways:
    file, options = folder / "carteiro.db", SqliteOptions(clock=clock)
    return Ways(partial(open_sqlite, file, options), partial(open_sqlite_ledger, file, options))


def _in_a_database(folder: Path, clock: StoreClock) -> Ways:
    url, options = postgres_url(folder), PostgresOptions(clock=clock, connections=4)
    return Ways(partial(open_postgres, url, options), partial(open_postgres_ledger, url, options))


@pytest.fixture
def clock() -> StoreClock:
    """The clock of the store."""
    return StoreClock()


@pytest.fixture(params=[_in_a_file, pytest.param(_in_a_database, marks=pytest.mark.servers)])
def ways(request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock) -> Ways:
    """Each store that can be a ledger alone."""
    opened: Ways = request.param(tmp_path, clock)
    return opened


async def test_messages_accepted_with_a_separate_queue_are_claimed_here(
    ways: Ways, clock: StoreClock
) -> None:
    """At their time, tenant by tenant; an attempt in flight is not disturbed."""
    due = clock.at(HOUR)
    async with ways.ledger() as half:
        await half.backend.tenants.define(tenants_named([ACME, BRASA]))
        first, second, later, held = new = [
            a_message(ACME),
            a_message(BRASA),
            a_message(ACME, due=due),
            a_message(BRASA),
        ]
        await half.ledger.accept(new)
        ticket = (held.id, EMAIL, BRASA, 1, clock.now_ms)
        [job] = await half.ledger.open(a_claim_id(), [ticket])
        assert isinstance(job, LeasedJob)
        await half.ledger.declare([Start(job.lease, "sandbox", HOLD)], [True])

    async with ways.whole() as backend:
        assert sorted(await claimed_ids(backend.store)) == sorted([first.id, second.id])
        clock.advance(past(HOLD))
        assert held.id in await claimed_ids(backend.store)
        place = await backend.reading.place(later.id)
        [depth] = await backend.reading.depths()

    assert place is not None
    assert place.parked_until == due
    assert depth.unfinished == 4


async def test_store_without_its_jobs_hands_out_none(ways: Ways) -> None:
    """They are put elsewhere from the ledger, and back when the store keeps them again."""
    async with ways.whole() as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        await accepted(backend.store, *messages(2, ACME), *messages(1, BRASA))
        await attempted(backend.store, sent(), limit=1)
    async with ways.ledger() as half:
        page = await half.ledger.unfinished(after=None, limit=10)
        depths = await half.backend.reading.depths()
    async with ways.whole() as backend:
        tenants = await claimed_tenants(backend.store)

    assert [entry[2] for entry in page.rows] == [ACME, BRASA]
    assert sum(depth.unfinished for depth in depths) == 0
    assert sorted(tenants) == [ACME, BRASA]


@pytest.mark.servers
async def test_new_process_reads_no_messages_accepted_before_it(
    tmp_path: Path, clock: StoreClock
) -> None:
    """It goes on from the last number: all messages of the past would be read, finished or not."""
    ways = _in_a_database(tmp_path, clock)
    async with ways.ledger() as half:
        await half.backend.tenants.define(tenants_named([ACME]))
        _, start = await half.ledger.recent(after=None, limit=0)
        await half.ledger.accept(messages(3, ACME))
    async with ways.ledger() as half:
        _, place = await half.ledger.recent(after=None, limit=0)
        known, _ = await half.ledger.recent(after=place, limit=10)
        [new] = messages(1, ACME)
        await half.ledger.accept([new])
        found, _ = await half.ledger.recent(after=place, limit=10)

    assert (start, known) == (0, [])
    assert [entry[0] for entry in found] == [new.id]


@pytest.mark.servers
async def test_new_process_reads_messages_of_open_transactions(
    tmp_path: Path, clock: StoreClock
) -> None:
    """They are committed after it has started, with lower numbers."""
    async with _in_a_database(tmp_path, clock).ledger() as half:
        application = await asyncpg.connect(postgres_url(tmp_path))
        async with application.transaction():
            await application.execute("SELECT pg_current_xact_id()")
            number = await application.fetchval("SELECT nextval('carteiro.message_no')")
            _, place = await half.ledger.recent(after=None, limit=0)
        await application.close()

    assert place < number
