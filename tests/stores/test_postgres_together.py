"""Several processes on one Postgres database, and applications next to them: nothing is hidden, nothing blocks."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from carteiro.errors import SchemaMismatch, StoreUnavailable
from carteiro.model import (
    EMAIL,
    Accepted,
    ApiLimits,
    Begun,
    BounceKind,
    Dead,
    End,
    Erased,
    EventType,
    Late,
    MessageId,
    NoteAnswer,
    Refused,
    RefusedWhy,
    Retry,
    Settled,
    Start,
    State,
)
from carteiro.model.checkup import Level
from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, database, open_postgres
from carteiro.stores.postgres.accept import accept_within
from carteiro.stores.postgres.database import Session
from carteiro.stores.postgres.examine import examine
from carteiro.stores.postgres.migrating import newest_version
from carteiro.stores.sql import erasing
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_claim_id,
    a_message,
    a_task,
    dead,
    messages,
    retry,
    sent,
    tenants_named,
)
from support.clock import StoreClock
from support.feedback import a_bounce
from support.shared_servers import shared_postgres
from support.steps import (
    accepted,
    attempted,
    claim,
    claimed,
    claimed_alone,
    claimed_ids,
    declare,
    settled,
)

pytestmark = pytest.mark.servers

PATIENCE_S = 20.0  # far more than anything here takes
_EXTEND = "SELECT * FROM carteiro.extend($1, $2, $3)"
_BEGIN = """
SELECT carteiro.declare_first(
    ARRAY[id], ARRAY[1], ARRAY[$1], ARRAY['sandbox'], $2::bigint, ARRAY[''], true, $2::bigint - 2000
)
FROM carteiro.messages
"""
_END = """
SELECT left_out FROM carteiro.settle_sent(
    ARRAY[$1], ARRAY[1], ARRAY[1], ARRAY['x'], ARRAY[$2], ARRAY['sandbox'], ARRAY[0], 10000, 3600000, true,
    carteiro.now_ms()
)
"""
_REQUEST_CANCEL = """
INSERT INTO carteiro.entries (
    message_no, version, state, due_at, expires_at, cancel_requested_at, tenant, is_email, created_at, timeline
)
SELECT
    no, 2, state, due_at, expires_at, due_at, tenant, false, created_at, format('["CANCEL_REQUESTED",%s,{}],', due_at)
FROM carteiro.ledger
"""
_REDRIVE = """
WITH redriven AS (
    UPDATE carteiro.entries
    SET state = 'ENQUEUED', finished_at = NULL, expires_at = expires_at + 1, version = version + 1
    RETURNING expires_at, message_no
)
INSERT INTO carteiro.unfinished (expires_at, message_no) SELECT * FROM redriven
"""
_OF_ANOTHER_SERVER = """
UPDATE carteiro.ring
SET seen = format('%1$s:%1$s:', pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 40)::pg_snapshot
"""
_LARGE = json.dumps({"html": "x" * 500_000})


@pytest.fixture
def empty() -> Iterator[str]:
    """A database without a schema."""
    with shared_postgres().a_database() as made:
        yield made


@pytest.fixture
async def backend(url: str) -> AsyncIterator[Backend]:
    """A store with the server's clock, which knows two tenants."""
    async with open_postgres(url) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


@pytest.fixture
async def application(url: str) -> AsyncIterator[Any]:
    """A connection of another application."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


# --- starting


async def test_processes_that_start_at_once_create_one_schema(empty: str) -> None:
    """Each finds it or creates it."""
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE_S):
        opened = await asyncio.gather(
            *(stack.enter_async_context(open_postgres(empty)) for _ in range(8))
        )
        await opened[0].tenants.define(tenants_named([ACME]))
        [message] = await accepted(opened[1].store, a_message())

        assert await claimed_ids(opened[2].store) == [message]

    with psycopg.connect(empty) as db:
        applied = db.execute("SELECT number FROM carteiro.migrations ORDER BY number").fetchall()
    assert applied == [(number,) for number in range(newest_version() + 1)]  # 0: the functions


async def test_newer_schema_is_refused_and_not_changed(url: str) -> None:
    """The text says which is newer, and what to do."""
    with psycopg.connect(url) as db:
        db.execute(
            "INSERT INTO carteiro.migrations (number, name, digest) VALUES (9999, 'later', 1)"
        )

    with pytest.raises(SchemaMismatch, match=r"newer Carteiro \(schema 9999.*upgrade this program"):
        async with open_postgres(url):
            pass


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE carteiro.migrations DROP digest", "UPDATE carteiro.migrations SET digest = 1"],
)
async def test_schema_of_other_texts_is_refused(url: str, change: str) -> None:
    """A database of an unreleased version has the right number and other tables: there is no migration from it."""
    with psycopg.connect(url) as db:
        db.execute(change)

    with pytest.raises(SchemaMismatch, match=r"unreleased version of Carteiro.*name another"):
        async with open_postgres(url):
            pass
    levels = {each.check: each.level async for each in examine(url)}
    assert levels["schema"] is Level.FAIL


# --- claiming


async def test_four_claimers_of_one_tenant_never_see_an_empty_queue_while_jobs_are_ready(
    backend: Backend, url: str
) -> None:
    """A concurrent claim waits for its turn, and gets the rest."""
    await accepted(backend.store, *messages(600))
    seen: list[MessageId] = []

    async def drain(store: Any, looker: Any) -> int:
        while jobs := await claimed(store, limit=7):
            seen.extend(job.lease.job for job in jobs)
        return int(await looker.fetchval("SELECT count(*) FROM carteiro.ready"))

    async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE_S):
        others = [await stack.enter_async_context(open_postgres(url)) for _ in range(4)]
        lookers = [await asyncpg.connect(url) for _ in others]
        left = await asyncio.gather(
            *(drain(each.store, looker) for each, looker in zip(others, lookers, strict=True))
        )
        await asyncio.gather(*(looker.close() for looker in lookers))

    assert left == [0, 0, 0, 0]
    assert len(seen) == len(set(seen)) == 600


async def test_claimer_that_reads_no_answer_blocks_no_other(backend: Backend, url: str) -> None:
    """A stopped process reads nothing from its socket: a large answer must not hold the ring."""
    async with open_postgres(url, PostgresOptions(connections=1)) as stopped:
        assert await claimed(stopped.store) == []  # the statement is prepared
        await accepted(backend.store, *messages(60, content=_LARGE))
        transport = await _transport(stopped)
        transport.pause_reading()
        stuck = asyncio.create_task(claim(stopped.store))
        async with asyncio.timeout(PATIENCE_S):
            while not await _is_leased(url):
                await asyncio.sleep(0.01)
            await accepted(backend.store, a_message(BRASA))
            other = await claimed_alone(backend.store)

        transport.resume_reading()
        jobs = (await stuck).jobs

    assert other.tenant == BRASA
    assert [job.content for job in jobs] == [_LARGE] * 60


@pytest.mark.parametrize("prepares", [True, False])
async def test_process_that_stops_inside_a_transaction_is_disconnected(
    backend: Backend, url: str, prepares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a pooler a statement takes several calls: a missing commit must not hold the ring."""
    monkeypatch.setattr(database, "_LONGEST_PAUSE", "200ms")
    await accepted(backend.store, a_message())
    async with open_postgres(url, PostgresOptions(prepared_statements=prepares)) as stopped:
        entered, awake = asyncio.Event(), asyncio.Event()
        pausing = asyncio.create_task(_pause_with_the_ring(stopped, entered, awake))
        async with asyncio.timeout(PATIENCE_S):
            await entered.wait()
            taken = await claimed(backend.store)
        awake.set()
        with pytest.raises(StoreUnavailable):
            await pausing

    assert len(taken) == 1


async def test_claim_that_finds_nothing_waits_for_nobody(backend: Backend, url: str) -> None:
    await accepted(backend.store, a_message())
    assert len(await claimed(backend.store)) == 1
    await claimed(backend.store, kinds=[TASK])  # the first of a kind adds its clock
    async with open_postgres(url) as other:
        db: Any = other.store._db  # type: ignore[attr-defined]
        async with db.transaction() as session, asyncio.timeout(PATIENCE_S):
            await session.fetch("lock_ring")

            assert not await claimed(backend.store)

            await accepted(backend.store, a_message())  # of another kind
            assert not await claimed(backend.store, kinds=[TASK])


async def _pause_with_the_ring(
    backend: Backend, entered: asyncio.Event, awake: asyncio.Event
) -> None:
    db: Any = backend.store._db  # type: ignore[attr-defined]
    async with db.transaction() as session:
        await session.fetch("lock_ring")
        entered.set()
        await awake.wait()
        await session.fetch("lock_ring")


async def _transport(backend: Backend) -> Any:
    """The socket of the one connection of this store."""
    db: Any = backend.store._db  # type: ignore[attr-defined]
    async with db._pool.acquire() as connection:
        return connection._transport


async def _is_leased(url: str) -> bool:
    connection = await asyncpg.connect(url)
    try:
        return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM carteiro.leased)"))
    finally:
        await connection.close()


async def test_hold_that_was_recorded_late_is_found_after_the_death_of_its_worker(url: str) -> None:
    """A delayed statement sets a time that others have already passed."""
    clock = StoreClock()
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        late = await claimed_alone(backend.store, lease=timedelta(seconds=30))
        clock.advance(timedelta(seconds=20))
        await accepted(backend.store, a_message())
        await claimed_alone(backend.store)  # it has looked for lost leases up to now
        clock.advance(timedelta(seconds=-19))  # as the worker's `now` was when it asked

        begun = await declare(backend.store, late, hold=timedelta(seconds=5))
        clock.advance(timedelta(seconds=19))
        again = await claimed_alone(backend.store)

    assert isinstance(begun, Begun)
    assert again.lease.job == message
    assert again.open_attempt


async def test_heartbeat_that_crosses_a_start_does_not_hide_the_end_of_the_hold(url: str) -> None:
    """The start waits for the heartbeat, shortens its extension, and informs claims that saw only that."""
    clock = StoreClock()
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        job = await claimed_alone(backend.store, lease=timedelta(seconds=1))
        heart, hand = await asyncpg.connect(url), await asyncpg.connect(url)
        beat, start = heart.transaction(), hand.transaction()
        await beat.start()
        await heart.execute(_EXTEND, [message], [job.lease.claim], clock() + 60_000)
        await start.start()
        beginning = asyncio.create_task(hand.fetchval(_BEGIN, job.lease.claim, clock() + 2_000))
        await _until_waiting(heart)
        await beat.commit()
        begun = await beginning
        await claim(backend.store)
        await start.commit()
        await heart.close()
        await hand.close()
        clock.advance(timedelta(seconds=3))
        again = await claimed_alone(backend.store)

    assert begun == []
    assert again.lease.job == message


@pytest.mark.parametrize("is_reaped", [True, False])
async def test_lease_that_is_extended_while_another_takes_it_stays(
    url: str, *, is_reaped: bool
) -> None:
    """The process that found it expired waits for the heartbeat, and looks again."""
    clock = StoreClock()
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        job = await claimed_alone(backend.store, lease=timedelta(seconds=1))
        clock.advance(timedelta(seconds=2))
        heart, watch = await asyncpg.connect(url), await asyncpg.connect(url)
        beat = heart.transaction()
        await beat.start()
        await heart.execute(_EXTEND, [message], [job.lease.claim], clock() + 60_000)
        taking = backend.store.reap(limit=10) if is_reaped else claimed(backend.store)
        taker = asyncio.create_task(taking)
        await _until_waiting(watch)
        await beat.commit()
        taken = await taker
        await heart.close()
        await watch.close()
        extended = await backend.store.extend([job.lease], lease=timedelta(seconds=1))
        left = await claimed(backend.store)
        clock.advance(timedelta(seconds=61))
        again = await claimed_ids(backend.store)

    assert not taken
    assert extended == [True]
    assert left == []
    assert again == [message]


async def test_start_that_crosses_a_cancel_waits_without_its_claim(
    backend: Backend, application: Any
) -> None:
    """A cancel writes the entry, then ends the lease: a start that locks in the other order would stop both."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    async with application.transaction():
        await application.execute(_REQUEST_CANCEL)
        starting = asyncio.create_task(declare(backend.store, job))
        await _until_waiting(application)
        await application.execute("SELECT FROM carteiro.claims FOR UPDATE NOWAIT")

    answer = await starting
    assert isinstance(answer, Refused)
    assert answer.why is RefusedWhy.CANCELLED


async def test_start_does_not_wait_for_the_ends_of_its_claim(url: str, application: Any) -> None:
    """A worker settles jobs of a claim while it declares others: each would wait for the other's disk."""
    async with open_postgres(url) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *messages(3))
        jobs = await claimed(backend.store)
        await declare(backend.store, jobs[0])
        async with application.transaction(), asyncio.timeout(PATIENCE_S):
            [left] = await application.fetchrow(_END, jobs[0].lease.job, jobs[0].lease.claim)
            during = await declare(backend.store, jobs[1])
        after = await declare(backend.store, jobs[2])

    assert left == []
    assert isinstance(during, Begun)
    assert isinstance(after, Begun)


async def test_start_that_crosses_the_end_of_its_lease_is_not_made(
    url: str, application: Any
) -> None:
    """It has seen the lease, and finds it taken: nothing of it is stored."""
    clock = StoreClock()
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        taken, kept = await accepted(backend.store, a_message(), a_message())
        jobs = await claimed(backend.store, lease=timedelta(seconds=1))
        clock.advance(timedelta(seconds=2))
        async with application.transaction():
            reaped = await application.fetchval("SELECT carteiro.reap(1, 3600000, $1)", clock())
            starts = [Start(job.lease, "sandbox", timedelta(seconds=5)) for job in jobs]
            starting = asyncio.create_task(backend.store.declare(starts))
            await _until_waiting(application)
        answers = await starting
        again = await claimed_alone(backend.store)

    assert reaped == 1
    assert [type(each) for each in answers] == [Refused, Begun]
    assert [job.lease.job for job in jobs] == [taken, kept]
    assert again.lease.job == taken
    assert not again.open_attempt


async def test_release_that_crosses_a_start_leaves_the_attempt(url: str, application: Any) -> None:
    """A worker that stops gives back jobs whose start it has given up: it may be stored all the same."""
    clock = StoreClock()
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        job = await claimed_alone(backend.store)
        async with application.transaction():
            await application.fetchval(_BEGIN, job.lease.claim, clock() + 2_000)
            releasing = asyncio.create_task(backend.store.release([job.lease]))
            await _until_waiting(application)
        await releasing
        early = await claimed(backend.store)
        clock.advance(timedelta(seconds=2))
        again = await claimed_alone(backend.store)

    assert early == []
    assert again.lease.job == message
    assert again.open_attempt


@pytest.mark.parametrize("verdict", [dead(), retry(timedelta(hours=1))])
async def test_end_that_crosses_the_end_of_its_hold_is_late(
    url: str, application: Any, verdict: Dead | Retry
) -> None:
    """Else the message would have ended, or would have to wait, while its job is ready for the next worker."""
    clock = StoreClock()
    async with open_postgres(url, PostgresOptions(clock=clock)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        job = await claimed_alone(backend.store)
        await declare(backend.store, job, hold=timedelta(seconds=1))
        assert await claimed(backend.store) == []  # it reads the end of the hold
        clock.advance(timedelta(seconds=2))
        async with application.transaction():
            await application.execute("SELECT carteiro.reap(1, 3600000, $1)", clock())
            ending = asyncio.create_task(backend.store.settle([End(job.lease, verdict)]))
            await _until_waiting(application)
        [end] = await ending
        again = await claimed_alone(backend.store)

    assert isinstance(end, Late)
    assert again.lease.job == message
    assert again.open_attempt


@pytest.mark.parametrize("is_committed", [True, False])
async def test_message_that_is_redriven_while_its_tenant_is_erased_leaves_nothing(
    backend: Backend, application: Any, monkeypatch: pytest.MonkeyPatch, *, is_committed: bool
) -> None:
    """Erasing takes the jobs first, then the rows: in between a dead letter can be sent again."""
    await accepted(backend.store, a_message())
    job = await claimed_alone(backend.store)
    await declare(backend.store, job)
    await settled(backend.store, job, dead())
    redrive, erase_rows = application.transaction(), erasing._erase_rows
    await redrive.start()

    async def redriven_before(*arguments: Any, **named: Any) -> Erased:
        await application.execute(_REDRIVE)
        if is_committed:
            await redrive.commit()
        erase = asyncio.create_task(erase_rows(*arguments, **named))
        if not is_committed:
            await _until_waiting(application)
            await redrive.commit()
        return await erase

    monkeypatch.setattr(erasing, "_erase_rows", redriven_before)
    erased = await backend.tenants.erase(ACME)

    assert erased is not None
    assert await application.fetchval("SELECT count(*) FROM carteiro.messages") == 0
    assert await application.fetchval("SELECT count(*) FROM carteiro.unfinished") == 0


async def test_claim_disappears_with_its_last_lease(url: str) -> None:
    """However many settles end it; one that nobody ended is cleared away with the expired ones."""
    async with open_postgres(url) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *(a_task() for _ in range(6)))
        jobs = await claimed(backend.store, kinds=[TASK])
        looker = await asyncpg.connect(url)
        counts = []
        for some in (jobs[:2], jobs[2:5], jobs[5:]):
            await backend.store.settle([End(job.lease, sent(), attempted=True) for job in some])
            counts.append(await looker.fetchval("SELECT count(*) FROM carteiro.claims"))
        await looker.execute("INSERT INTO carteiro.claims (id) VALUES ('of a lost worker')")
        reaped = await backend.store.reap(limit=10)
        left = await looker.fetchval("SELECT count(*) FROM carteiro.claims")
        await looker.close()

    assert counts == [1, 1, 0]
    assert (reaped, left) == (0, 0)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_first_change_that_is_not_committed_yet_is_waited_for(
    url: str, *, is_kept: bool
) -> None:
    """There is no entry to lock: the settle waits for the other's, and goes by the rules if it stays."""
    async with open_postgres(url) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_task())
        job = await claimed_alone(backend.store, kinds=(TASK,))
        other = await asyncpg.connect(url)
        cancelling = other.transaction()
        await cancelling.start()
        await other.execute(_REQUEST_CANCEL)
        settling = asyncio.create_task(settled(backend.store, job, sent(), attempted=True))
        await _until_waiting(other)
        await (cancelling.commit() if is_kept else cancelling.rollback())
        await other.close()
        answer = await settling
        stored = await backend.reading.message(message)
        events = await backend.reading.events(message)

    assert answer == Settled(State.SENT)
    assert stored is not None
    assert (stored.state, stored.attempts) == (State.SENT, 1)
    assert (stored.cancel_requested_at is not None) == is_kept
    told = [EventType.CANCEL_REQUESTED] if is_kept else []
    assert [each.type for each in events] == [*told, EventType.SENT]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_change_that_a_transaction_cannot_see_is_an_error_at_once(
    url: str, application: Any, level: str
) -> None:
    """Some databases isolate transactions more by default: a repeated statement would never see the entry."""
    name = await application.fetchval("SELECT current_database()")
    await application.execute(
        f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'"
    )
    async with open_postgres(url) as backend, asyncio.timeout(PATIENCE_S):
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, a_task())
        [job] = await claimed(backend.store, kinds=[TASK])
        ends = [End(job.lease, sent(""), attempted=True)]
        async with application.transaction():
            await application.execute(_REQUEST_CANCEL)
            settling = asyncio.create_task(backend.store.settle(ends))
            await _until_waiting(application)

        with pytest.raises(StoreUnavailable, match="could not serialize"):
            await settling

        assert await backend.store.settle(ends) == [Settled(State.SENT)]


async def test_feedback_locks_the_tenant_before_the_message(
    url: str,
) -> None:
    """Erasing a tenant locks in the same order; otherwise they would deadlock."""
    async with open_postgres(url) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [message] = await accepted(backend.store, a_message())
        await attempted(backend.store, sent())
        eraser = await asyncpg.connect(url)
        erasing = eraser.transaction()
        await erasing.start()
        await eraser.execute("SELECT FROM carteiro.tenants WHERE id = $1 FOR UPDATE", ACME)
        noting = asyncio.create_task(backend.tracking.note([a_bounce(message, BounceKind.HARD)]))
        await _until_waiting(eraser)
        free = await eraser.fetch("SELECT FROM carteiro.entries FOR UPDATE SKIP LOCKED")
        await erasing.commit()
        await eraser.close()
        answers = await noting

    assert len(free) == 1
    assert answers == [NoteAnswer.NOTED]


async def test_accept_locks_the_tenant_before_its_counts(url: str) -> None:
    """Erasing a tenant locks in the same order; otherwise they would deadlock."""
    limits = ApiLimits(per_minute=10)
    async with open_postgres(url) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, a_message(limits=limits))
        eraser = await asyncpg.connect(url)
        erasing = eraser.transaction()
        await erasing.start()
        await eraser.execute("SELECT FROM carteiro.tenants WHERE id = $1 FOR UPDATE", ACME)
        accepting = asyncio.create_task(backend.store.accept([a_message(limits=limits)]))
        await _until_waiting(eraser)
        free = await eraser.fetch("SELECT FROM carteiro.api_counts FOR UPDATE SKIP LOCKED")
        counts = await eraser.fetchval("SELECT count(*) FROM carteiro.api_counts")
        await erasing.commit()
        await eraser.close()
        [answer] = await accepting

    assert len(free) == counts > 0
    assert isinstance(answer, Accepted)


async def _until_waiting(connection: Any) -> None:
    """Return when a session waits for a lock."""
    async with asyncio.timeout(PATIENCE_S):
        while not await connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
        ):
            await asyncio.sleep(0.01)


async def test_messages_accepted_right_after_a_restore_are_claimed(url: str) -> None:
    """Another server has its own transaction numbers: the position of the read notes is unknown."""
    async with open_postgres(url) as before:
        await before.tenants.define(tenants_named([ACME]))
        waiting = await accepted(before.store, a_message())
    restored = await asyncpg.connect(url)
    await restored.execute(_OF_ANOTHER_SERVER)
    async with open_postgres(url) as backend:
        waiting += await accepted(backend.store, a_message())
        for _ in range(60):  # until the counter has caught up
            await restored.execute("SELECT pg_current_xact_id()")
        got = await claimed_ids(backend.store)
    await restored.close()

    assert sorted(got) == sorted(waiting)


async def test_returning_worker_changes_no_attempt_of_another(backend: Backend, url: str) -> None:
    """Its claims are outdated: its verdict is late, its start refused."""
    await accepted(backend.store, a_message(), a_message())
    async with open_postgres(url) as other:
        sleeper, undeclared = await claimed(backend.store, lease=timedelta(milliseconds=1))
        begun = await declare(backend.store, sleeper, hold=timedelta(milliseconds=1))
        await asyncio.sleep(0.01)  # real time has to pass it by
        taken = {job.lease.job: job for job in await claimed(other.store)}
        again = [
            await declare(other.store, taken[each.lease.job]) for each in (sleeper, undeclared)
        ]

        late = await settled(backend.store, sleeper, sent("late"))
        refused = await declare(backend.store, undeclared)
        ends = [await settled(other.store, job, sent("in time")) for job in taken.values()]

    assert isinstance(begun, Begun)
    assert all(isinstance(each, Begun) for each in again)
    assert isinstance(late, Late)
    assert isinstance(refused, Refused)
    assert all(isinstance(each, Settled) for each in ends)


# --- an application's own transaction


async def test_open_transaction_neither_hides_nor_blocks_and_its_rollback_undoes_all(
    backend: Backend, application: Any
) -> None:
    """Its uncommitted messages belong to nobody; all others of its tenant go on."""
    inside = a_message()
    transaction = application.transaction()
    await transaction.start()
    await _accepted_within(application, inside)

    async with asyncio.timeout(PATIENCE_S):
        [before] = await accepted(backend.store, a_message())
        first = await claimed_ids(backend.store)
        [beside] = await accepted(backend.store, a_message())
        second = await claimed_ids(backend.store)
    await transaction.rollback()

    assert (first, second) == ([before], [beside])
    assert await claimed_ids(backend.store) == []
    assert await backend.reading.message(inside.id) is None


async def test_messages_accepted_in_an_old_transaction_are_found_at_its_commit(
    backend: Backend, application: Any
) -> None:
    """After any number of messages since it began."""
    old, younger = a_message(), a_message(BRASA)
    transaction = application.transaction()
    await transaction.start()
    await _accepted_within(application, old, younger)
    for _ in range(3):
        [beside] = await accepted(backend.store, a_message())
        assert await claimed_ids(backend.store) == [beside]

    await transaction.commit()

    assert set(await claimed_ids(backend.store)) == {old.id, younger.id}


async def test_commit_of_another_process_wakes_an_idle_worker(
    backend: Backend, application: Any
) -> None:
    """The server notifies at commit, not before."""
    heard = backend.wake.rings()
    while await backend.wake.wait(timedelta(milliseconds=300), since=heard):
        heard = backend.wake.rings()  # until it listens and all is quiet
    async with application.transaction():
        await _accepted_within(application, a_message())
        before = backend.wake.rings()

    async with asyncio.timeout(PATIENCE_S):
        assert await backend.wake.wait(timedelta(seconds=PATIENCE_S), since=before)
    assert before == heard
    assert len((await claim(backend.store, kinds=[EMAIL], claim_id=a_claim_id())).jobs) == 1


async def _accepted_within(application: Any, *new: Any) -> None:
    now = await application.fetchval("SELECT carteiro.now_ms()")
    await accept_within(Session(application), new, now)
