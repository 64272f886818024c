"""Rows read by the store on Postgres: no more than it returns, with any statistics and without vacuum.

The tests' server never analyzes nor vacuums by itself: right after a bulk load the planner has no
statistics, and deleted rows stay in place.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from carteiro.model import End, FailureFilter, LeasedJob, NewRecipient, Settled, TenantId
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, open_postgres
from support.builders import TASK, a_message, a_task, dead, retry, sent, tenants_named
from support.steps import LEASE, accepted, claim, claimed, declare

pytestmark = pytest.mark.servers

_TENANTS = [f"tenant-{number:02}" for number in range(20)]
_LOADED = 100_000
_PASSING = 50_000
_AT_ONCE = 1000
_SLOTS = 200

# The state after many accepts, only faster.
_BULK = """
WITH new AS (
    SELECT nextval('carteiro.message_no') AS no, format('%s-%s', $2::text, n) AS id,
        format('tenant-%s', lpad((n % 20)::text, 2, '0')) AS tenant, carteiro.now_ms() AS at
    FROM generate_series(1, $1::integer) AS n
),
messages AS (
    INSERT INTO carteiro.messages (
        no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, due_at, created_at, content
    )
    SELECT no, id, tenant, $3, false, 'at_least_once', 5, 86400000, 'request-1', at, at, '{}' FROM new
),
unfinished AS (
    INSERT INTO carteiro.unfinished (expires_at, message_no) SELECT at + 86400000, no FROM new
),
ready AS (
    INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no)
    SELECT tenant, $3, carteiro.rank(5, at), id, no FROM new
)
INSERT INTO carteiro.notes (kind, tenant, jobs, wake_at, rank)
SELECT $3, tenant, count(*), min(at), min(carteiro.rank(5, at)) FROM new GROUP BY tenant
"""
_RECIPIENTS = """
INSERT INTO carteiro.recipient_records (id, tenant, email, external_id, cpf_cnpj_hash, created_at)
SELECT gen_random_uuid(), 'tenant-00', format('%s@example.com', n), n, n, 0 FROM generate_series(1, $1::integer) AS n
"""
# Of 500 templates in each minute, some fail.
_FIGURES = """
INSERT INTO carteiro.rollups (span, tenant, template, provider, at, weight, sent, failed, figures)
SELECT
    'minute', 'tenant-' || t, 'welcome', '', (carteiro.now_ms() / 60000 - m) * 60000, 2, 1, (t < $1::integer)::integer,
    '{}'
FROM generate_series(0, 499) AS t, generate_series(0, 120) AS m
"""
_FAILURES = """
WITH groups AS (
    INSERT INTO carteiro.failure_groups
    SELECT
        'group-' || n, 'sandbox', 'rule', '', 'no', '550', 'PERMANENT_ERROR', 'message', 'open', n, n, n, NULL, 200, 0
    FROM generate_series(1, 100) AS n
    RETURNING id
)
INSERT INTO carteiro.failure_counts
SELECT id, h, 'tenant-00', CASE h WHEN 0 THEN 200 ELSE 1 END, 0, 1, 1, '[]'
FROM groups, generate_series(0, 200) AS h
"""
_READ = """
SELECT coalesce(sum(seq_tup_read), 0)::bigint, coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint
FROM pg_stat_user_tables WHERE schemaname = 'carteiro'
"""
_CLAIM = """
EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
SELECT * FROM carteiro.claim($1, $2, 0, 'looked', 1, 10, true, $3, $4, $5, $6, 1000, NULL)
"""


@pytest.fixture
async def backend(url: str) -> AsyncIterator[Backend]:
    """A store with one connection, which counts its reads."""
    async with open_postgres(url, PostgresOptions(connections=1)) as opened:
        await opened.tenants.define(tenants_named(_TENANTS))
        yield opened


@pytest.fixture
async def looker(url: str) -> AsyncIterator[Any]:
    """A connection of the test."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def _load(looker: Any, number: int, name: str) -> None:
    await looker.execute(_BULK, number, name, TASK)


async def _rows_read(backend: Backend) -> tuple[int, int]:
    """The rows read so far: by sequential scans, and in total."""
    pool: Any = backend.store._db._pool  # type: ignore[attr-defined]
    async with pool.acquire() as connection:
        await connection.fetchval("SELECT pg_stat_force_next_flush()")
        await connection.fetchval("SELECT pg_stat_clear_snapshot()")
        walked, read = await connection.fetchrow(_READ)
        return walked, read


async def _blocks(looker: Any) -> int:
    """The pages that a claim touches; it is undone."""
    transaction = looker.transaction()
    await transaction.start()
    arguments = ([TASK], _SLOTS, READIED_PER_TURN, SUSPECT_CLAIMS, MOST_DRAWS, LONGEST_HOLD_MS)
    [plan] = json.loads(await looker.fetchval(_CLAIM, *arguments))
    await transaction.rollback()
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


async def _settle(backend: Backend, jobs: list[LeasedJob], verdict: Any) -> None:
    answers = await backend.store.settle([End(job.lease, verdict, events=()) for job in jobs])
    assert all(isinstance(answer, Settled) for answer in answers)


async def test_operations_without_statistics_read_no_more_than_needed(
    backend: Backend, looker: Any
) -> None:
    """After a bulk load without analyze, each operation on 200 jobs reads a few thousand rows of 100,000."""
    await _load(looker, _LOADED, "bulk")
    await looker.execute(_RECIPIENTS, _LOADED)
    emails = [a_message(_TENANTS[0]) for _ in range(_SLOTS)]
    known = [NewRecipient("a@example.com", cpf_cnpj_hash=f"{n}") for n in range(_SLOTS)]
    most: dict[str, tuple[int, int]] = {}

    async def read(name: str, asked: Any) -> Any:
        before = await _rows_read(backend)
        answer = await asked
        after = await _rows_read(backend)
        most[name] = (after[0] - before[0], after[1] - before[1])
        return answer

    store = backend.store
    await claim(store, kinds=[TASK], limit=1)  # it reads the notes of the load
    jobs = (await read("claim", claim(store, kinds=[TASK], limit=_SLOTS))).jobs
    await read("extend", store.extend([job.lease for job in jobs], lease=LEASE))
    await read("settle sent", _settle(backend, jobs[:50], sent()))
    await read("settle retry", _settle(backend, jobs[50:100], retry(timedelta(hours=1))))
    await read("settle dead", _settle(backend, jobs[100:150], dead()))
    await read("release", store.release([job.lease for job in jobs[150:]]))
    lost = await claim(store, kinds=[TASK], limit=50)
    await read("undo claims", store.undo_claims([lost.jobs[0].lease.claim]))
    await read("accept", accepted(store, *emails, a_task(_TENANTS[1])))
    await read("meet", store.accept([a_message(_TENANTS[0], recipient=each) for each in known]))
    mails = await claimed(store, limit=1)
    await read("declare", declare(store, mails[0]))
    await read("cancel", store.cancel([each.id for each in emails[:20]], tenant=emails[0].tenant))
    await read("reap", store.reap(limit=_SLOTS))
    await read("expire", backend.upkeep.expire(limit=_SLOTS))

    assert len(jobs) == _SLOTS
    assert {name: rows for name, (_, rows) in most.items() if rows > 20 * _SLOTS} == {}
    assert {
        name: rows for name, (rows, _) in most.items() if rows > _SLOTS
    } == {}  # tables of a few rows


async def test_figures_without_statistics_are_read_by_their_keys(
    backend: Backend, looker: Any
) -> None:
    """Of failing templates alone, of an hour each; of a tenant's failure groups a sum each, not their hours."""
    await looker.execute(_FIGURES, 5)
    await looker.execute(_FAILURES)
    before = await _rows_read(backend)
    worst = await backend.rollups.worst(timedelta(hours=1), least=20, limit=10)
    between = await _rows_read(backend)
    mine = await backend.failures.list(FailureFilter(TenantId(_TENANTS[0])))
    after = await _rows_read(backend)

    assert len(worst) == 5
    assert between[0] - before[0] == 0
    assert between[1] - before[1] <= 2 * 5 * 61
    assert (len(mine.rows), mine.rows[0].attempts) == (100, 200)
    assert after[1] - between[1] <= 2 * 100 + 10


async def test_claim_touches_a_constant_number_of_pages(
    backend: Backend, looker: Any, url: str
) -> None:
    """An old snapshot blocks vacuum; no claim walks over deleted rows."""
    await _load(looker, 2 * _AT_ONCE, "first")
    await _pass(backend, _AT_ONCE)
    await _blocks(looker)  # the first one of a connection reads the catalog, too
    before = await _blocks(looker)
    holder = await asyncpg.connect(url)
    held = holder.transaction(isolation="repeatable_read")
    await held.start()
    await holder.fetchval("SELECT count(*) FROM carteiro.ready")
    await _load(looker, _PASSING, "passing")
    await _pass(backend, _PASSING)

    after = await _blocks(looker)
    await held.rollback()
    await holder.close()

    # Pages of indexes split by chance: 1.15 to 1.3. A walk over what has passed would be many times as much.
    assert after < 1.6 * before, (before, after)


async def _pass(backend: Backend, number: int) -> None:
    """Process this many jobs."""
    while number > 0:
        async with asyncio.timeout(30):
            jobs = await claimed(backend.store, kinds=[TASK], limit=min(number, _AT_ONCE))
            await _settle(backend, jobs, sent())
        assert jobs
        number -= len(jobs)
