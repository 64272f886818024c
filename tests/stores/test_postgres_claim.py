"""The short claim, which looks without a lock: what changes until it takes the ring is never missed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from carteiro.errors import StoreUnavailable
from carteiro.model import EMAIL, ZERO, Claimed, LeasedJob, MessageId
from carteiro.ports import Backend
from carteiro.stores.postgres import open_postgres
from support.builders import ACME, BRASA, a_message, messages, tenants_named
from support.steps import accepted, claim, claimed, claimed_ids

pytestmark = pytest.mark.servers

PATIENCE_S = 20.0  # far more than anything here takes
_JOBS = 7
_WAITING = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
_CLAIM = """
    SELECT m.id FROM carteiro.claim(
        ARRAY[$1], $2, 0, 'another', 60000, 3, true, 100, 3, 100, 86400000, 1000, NULL
    ) AS c CROSS JOIN LATERAL unnest(c.o_numbers) AS n JOIN carteiro.messages AS m ON m.no = n
"""
_NO_LONG_WAY = """
    CREATE OR REPLACE FUNCTION carteiro.open_ring(
        p_kinds text[], p_longest bigint, p_jitter bigint, p_now bigint,
        OUT now bigint, OUT v bigint, OUT turn bigint, OUT left_of bigint[], OUT least_of bigint[],
        OUT lost_of bigint[], OUT has_far boolean[], OUT has_changed boolean
    ) LANGUAGE plpgsql AS $$ BEGIN RAISE 'not the short way'; END $$
"""

_AN_HOUR_LATER = """
    CREATE OR REPLACE FUNCTION carteiro.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT (extract(EPOCH FROM clock_timestamp()) * 1000)::bigint + 3600000 $$
"""


@pytest.fixture
async def backend(url: str) -> AsyncIterator[Backend]:
    """A store with the server's clock and two tenants, of which one has waiting jobs: the next claim is a short one."""
    async with open_postgres(url) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        await accepted(opened.store, *messages(_JOBS + 1))
        assert len(await claimed(opened.store, limit=1)) == 1
        yield opened


class _Crossed:
    """A claim that has looked, and waits for the ring."""

    def __init__(self, holder: Any, looker: Any, claiming: "asyncio.Task[Claimed]") -> None:
        self.holder = holder
        self.pid = 0
        self.idle_for: timedelta | None = None
        self._looker = looker
        self._claiming = claiming

    async def has_waiters(self, number: int) -> None:
        """Wait until this number of claims wait."""
        async with asyncio.timeout(PATIENCE_S):
            while len(waiting := await self._looker.fetch(_WAITING)) < number:
                await asyncio.sleep(0.01)
        self.pid = waiting[0]["pid"]

    async def jobs(self) -> list[LeasedJob]:
        """End the transaction that holds the ring, before."""
        async with asyncio.timeout(PATIENCE_S):
            found = await self._claiming
        self.idle_for = found.idle_for
        return found.jobs


@asynccontextmanager
async def _crossed(
    backend: Backend, url: str, change: str = "", *, limit: int = 100
) -> AsyncIterator[_Crossed]:
    """Hold the ring, and change something, while a claim begins."""
    holder, looker = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await holder.execute("BEGIN")
        await holder.execute("SELECT carteiro.lock_ring()")
        if change:
            await holder.execute(change)
        claiming = asyncio.create_task(claim(backend.store, limit=limit))
        crossed = _Crossed(holder, looker, claiming)
        await crossed.has_waiters(1)
        yield crossed
    finally:
        await holder.close()
        await looker.close()


async def _change_functions(url: str, text: str) -> None:
    changing = await asyncpg.connect(url)
    await changing.execute(text)
    await changing.close()


async def test_look_holds_if_the_ring_was_not_changed(backend: Backend, url: str) -> None:
    """This is the short way: the long one is blocked."""
    async with _crossed(backend, url) as crossed:
        await _change_functions(url, _NO_LONG_WAY)
        await crossed.holder.execute("ROLLBACK")
        jobs = await crossed.jobs()

    assert len(jobs) == _JOBS


@pytest.mark.parametrize("taken", [3, _JOBS])
async def test_claim_that_another_overtakes_gets_what_it_left(
    backend: Backend, url: str, taken: int
) -> None:
    async with _crossed(backend, url) as crossed:
        others = [row["id"] for row in await crossed.holder.fetch(_CLAIM, EMAIL, taken)]
        await crossed.holder.execute("COMMIT")
        ours = [job.lease.job for job in await crossed.jobs()]

    assert len(others) == taken
    assert len(ours) == _JOBS - taken
    assert not set(others) & set(ours)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("UPDATE carteiro.tenants SET paused = true", 0),
        ("UPDATE carteiro.tenants SET disabled = true", 0),
        ("UPDATE carteiro.tenants SET cap = 3", 2),  # one is in flight
        ("UPDATE carteiro.tenants SET rate_per_second = 2", 2),
        ("UPDATE carteiro.ring_clock SET n = n + 1, limit_count = 4, limit_per_ms = 60000", 4),
        ("DELETE FROM carteiro.ready", 0),
        ("DELETE FROM carteiro.ready; DELETE FROM carteiro.seats; DELETE FROM carteiro.tenants", 0),
    ],
)
async def test_claim_heeds_what_changed_after_its_look(
    backend: Backend, url: str, change: str, left: int
) -> None:
    async with _crossed(backend, url, change) as crossed:
        await crossed.holder.execute("COMMIT")
        jobs = await crossed.jobs()

    assert len(jobs) == left


async def test_tenant_that_comes_after_the_look_has_its_turns(backend: Backend, url: str) -> None:
    """The second look sees both."""
    async with _crossed(backend, url) as crossed:
        await accepted(backend.store, *messages(_JOBS, BRASA))
        await crossed.holder.execute("COMMIT")
        jobs = await crossed.jobs()

    tenants = [job.tenant for job in jobs]
    assert tenants.count(ACME) == tenants.count(BRASA) == _JOBS
    assert set(tenants[:4]) == {ACME, BRASA}  # a turn is three jobs


async def test_claim_is_by_age_if_turns_are_turned_off_after_its_look(
    backend: Backend, url: str
) -> None:
    """In turns the other tenant would have its first one at once."""
    tune = "INSERT INTO carteiro.overrides VALUES ('fairness', $${setting}$$)".format(
        setting='{"enable_round_robin": false, "max_jobs_per_tenant_batch": 3}'
    )
    async with _crossed(backend, url, tune) as crossed:
        await accepted(backend.store, *messages(_JOBS, BRASA))
        await crossed.holder.execute("COMMIT")
        jobs = await crossed.jobs()

    assert [job.tenant for job in jobs] == [ACME] * _JOBS + [BRASA] * _JOBS


async def test_only_one_of_two_claims_that_saw_the_same_ring_is_short(
    backend: Backend, url: str
) -> None:
    """The other one looks again, and gets what is left."""
    async with open_postgres(url) as other, _crossed(backend, url, limit=3) as crossed:
        second = asyncio.create_task(claimed(other.store, limit=100))
        await crossed.has_waiters(2)
        await crossed.holder.execute("ROLLBACK")
        ours, theirs = [
            {job.lease.job for job in jobs} for jobs in (await crossed.jobs(), await second)
        ]

    assert len(ours | theirs) == _JOBS
    assert not ours & theirs


async def test_urgent_job_that_comes_after_the_look_is_claimed_next(
    backend: Backend, url: str
) -> None:
    """Its rank is below the place where the seat is read from."""
    async with _crossed(backend, url, limit=3) as crossed:
        [urgent] = await accepted(backend.store, a_message(priority=1))
        await crossed.holder.execute("ROLLBACK")
        jobs = await crossed.jobs()

    assert urgent not in [job.lease.job for job in jobs]
    assert (await claimed_ids(backend.store))[0] == urgent


async def test_alarm_that_rings_while_the_claim_waits_ends_the_nap(
    backend: Backend, url: str
) -> None:
    """The nap begins when the claim has the ring, not when it looked."""
    due = datetime.now(UTC) + timedelta(minutes=30)
    [delayed] = await accepted(backend.store, a_message(BRASA, due=due))
    assert await claimed_ids(backend.store, limit=1)  # the alarm is known
    async with _crossed(backend, url) as crossed:
        await _change_functions(url, _AN_HOUR_LATER)
        await crossed.holder.execute("ROLLBACK")
        jobs = await crossed.jobs()

    assert len(jobs) == _JOBS - 1
    assert crossed.idle_for == ZERO
    assert delayed in await claimed_ids(backend.store)


async def test_note_that_comes_after_the_look_is_read_by_the_next_claim(
    backend: Backend, url: str
) -> None:
    async with _crossed(backend, url) as crossed:
        new = await accepted(backend.store, *messages(2, BRASA))
        await crossed.holder.execute("ROLLBACK")
        jobs = await crossed.jobs()

    assert {job.tenant for job in jobs} == {ACME}
    assert await claimed_ids(backend.store) == new


async def test_claim_that_dies_before_it_has_the_ring_takes_nothing(
    backend: Backend, url: str
) -> None:
    async with _crossed(backend, url) as crossed:
        await crossed.holder.execute("SELECT pg_terminate_backend($1)", crossed.pid)
        with pytest.raises(StoreUnavailable):
            await crossed.jobs()
        await crossed.holder.execute("ROLLBACK")

    assert len(await claimed(backend.store)) == _JOBS


async def test_claims_and_releases_of_two_processes_never_share_a_job(
    backend: Backend, url: str
) -> None:
    """Most of these claims are short, and many are overtaken."""
    seen: list[MessageId] = []

    async def work(store: Any) -> None:
        for turn in range(40):
            jobs = await claimed(store, limit=3)
            if turn % 3 == 0:
                await store.release([job.lease for job in jobs])
            else:
                seen.extend(job.lease.job for job in jobs)
            await accepted(store, *messages(1, BRASA if turn % 8 == 0 else ACME))

    async with open_postgres(url) as other, asyncio.timeout(4 * PATIENCE_S):
        await asyncio.gather(*(work(each.store) for each in (backend, other, backend, other)))
        while jobs := await claimed_ids(backend.store):
            seen += jobs

    assert len(seen) == len(set(seen)) == _JOBS + 4 * 40
