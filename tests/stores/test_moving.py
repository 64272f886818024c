"""A move from a file to a database: all of it, once, whatever happens in between."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from carteiro.errors import CannotMove, StoreMoved, StoreUnavailable
from carteiro.model import EMAIL, AuditFilter, MessageFilter, State
from carteiro.model.checkup import Level
from carteiro.ports import Backend
from carteiro.ports.moving import CARRIED, InFlight, Rows
from carteiro.stores.move import Moved, move, take_back
from carteiro.stores.postgres import PostgresOptions, open_postgres
from carteiro.stores.postgres.moving import PostgresTarget, open_target
from carteiro.stores.sqlite import SqliteOptions, moving, open_sqlite, open_sqlite_ledger
from carteiro.stores.sqlite.examine import examine
from carteiro.stores.sqlite.moving import SqliteSource, open_source
from support.builders import ACME, BRASA, a_message, messages, sent, tenants_named
from support.clock import StoreClock
from support.moving import claim_order, fill, read
from support.pgbouncer import a_pgbouncer
from support.shared_servers import a_migrated_database, shared_postgres
from support.steps import accepted, claim, claimed_alone, settled

pytestmark = pytest.mark.servers

_ONCE = timedelta(seconds=30)


class Killed(BaseException):
    """The process ends here."""


class Heard:
    """Remembers its reports."""

    def __init__(self) -> None:
        self.waited: list[InFlight] = []
        self.shares: list[float] = []

    def waits(self, left: InFlight) -> None:
        self.waited.append(left)

    def carried(self, share: float) -> None:
        self.shares.append(share)


@pytest.fixture
def clock() -> StoreClock:
    """The clock of both stores."""
    return StoreClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The source of the move."""
    return tmp_path / "carteiro.db"


@asynccontextmanager
async def on_file(file: Path, clock: StoreClock) -> AsyncIterator[Backend]:
    """The source of the move."""
    async with open_sqlite(file, SqliteOptions(clock=clock)) as opened:
        yield opened


@asynccontextmanager
async def in_database(url: str, clock: StoreClock) -> AsyncIterator[Backend]:
    """The target of the move."""
    async with open_postgres(url, PostgresOptions(clock=clock)) as opened:
        yield opened


@asynccontextmanager
async def ends(
    file: Path, url: str, clock: StoreClock
) -> AsyncIterator[tuple[SqliteSource, PostgresTarget]]:
    """Both ends of a move."""
    async with open_target(url, PostgresOptions(clock=clock)) as target:
        with open_source(file, clock=clock) as source:
            yield source, target


async def moved(file: Path, url: str, clock: StoreClock) -> Moved:
    """Move, as the command does."""
    async with ends(file, url, clock) as (source, target):
        return await move(source, target, Heard())


async def filled(file: Path, clock: StoreClock) -> dict[str, object]:
    """A store with one of everything; all its readable data."""
    async with on_file(file, clock) as backend:
        await fill(backend, clock)
        return await read(backend)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages so small that every table takes several."""
    monkeypatch.setattr(moving, "_MOST_ROWS", 2)


async def test_source_of_the_move_has_everything_in_it(file: Path, clock: StoreClock) -> None:
    """Or the tests below would prove little."""
    await filled(file, clock)
    async with on_file(file, clock) as backend:
        states = set(await backend.reading.states())
    with open_source(file, clock=clock) as source:
        counts = source.counts()

    assert set(counts) == {*CARRIED, "contents"}
    assert min(counts.values()) > 0
    assert states == {
        *(State.ENQUEUED, State.SENT_ATTEMPT, State.RETRY_SCHEDULED, State.SENT),
        *(State.FAILED, State.EXPIRED, State.CANCELLED),
    }


@pytest.mark.usefixtures("small_pages")
async def test_everything_reads_as_before(file: Path, url: str, clock: StoreClock) -> None:
    """Ids, timelines, states, shares, positions in the queue, lists in their order."""
    before = await filled(file, clock)

    await moved(file, url, clock)

    async with in_database(url, clock) as backend:
        after = await read(backend)
    assert {name for name in before if before[name] != after[name]} == set()


async def test_move_is_an_audit_row_of_the_target(file: Path, url: str, clock: StoreClock) -> None:
    """One, also if the move is asked for again; it names the source."""
    await filled(file, clock)
    for _ in range(2):
        await moved(file, url, clock)

    async with in_database(url, clock) as backend:
        [row] = (await backend.audit.list(AuditFilter(action="move"))).rows
    assert (row.kind, row.object, row.tenant) == ("store", f"sqlite:///{file}", None)


async def test_progress_ends_with_all_of_it(file: Path, url: str, clock: StoreClock) -> None:
    """Contents are counted, but come with their messages."""
    await filled(file, clock)
    heard = Heard()

    async with ends(file, url, clock) as (source, target):
        await move(source, target, heard)

    assert heard.shares == sorted(heard.shares)
    assert heard.shares[-1] == 1.0


async def test_workers_get_the_same_jobs_in_the_same_order(
    file: Path, url: str, clock: StoreClock
) -> None:
    """With their attempts and their doubts."""
    await filled(file, clock)
    copy, later = file.with_name("copy.db"), StoreClock(clock.now_ms)
    shutil.copy(file, copy)
    async with on_file(copy, later) as backend:
        expected = await claim_order(backend, later)

    await moved(file, url, clock)

    async with in_database(url, clock) as backend:
        order = await claim_order(backend, clock)
    assert len({job for job, *_ in order}) == len(order)
    assert order == expected


async def test_new_rows_follow_the_moved_ones(file: Path, url: str, clock: StoreClock) -> None:
    """Numbers of messages, events and mails go on."""
    await filled(file, clock)
    await moved(file, url, clock)

    async with in_database(url, clock) as backend:
        new = await accepted(backend.store, *messages(3))
        page = await backend.reading.messages(MessageFilter(), limit=3)

    assert [each.id for each in page.rows] == new[::-1]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("survived", [0, 1, 7, 23, 50])
async def test_killed_move_goes_on(file: Path, url: str, clock: StoreClock, survived: int) -> None:
    """Before a page is stored or after it: no row is missing, none is there twice."""
    before = await filled(file, clock)
    for is_kept in (False, True):
        async with ends(file, url, clock) as (source, target):
            _kill(target, after=survived, is_kept=is_kept)
            with pytest.raises(Killed):
                await move(source, target, Heard())

    await moved(file, url, clock)

    async with in_database(url, clock) as backend:
        after = await read(backend)
    assert {name for name in before if before[name] != after[name]} == set()


@pytest.mark.parametrize("step", ["begin", "close", "finish"])
async def test_move_killed_between_the_stores_goes_on(
    file: Path, url: str, clock: StoreClock, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One end has already a state that the other has not."""
    before = await filled(file, clock)
    async with ends(file, url, clock) as (source, target):
        monkeypatch.setattr(source, step, _killed)
        with pytest.raises(Killed):
            await move(source, target, Heard())

    await moved(file, url, clock)

    async with in_database(url, clock) as backend:
        after = await read(backend)
    assert {name for name in before if before[name] != after[name]} == set()
    with open_source(file) as left:
        departure = left.departure()
    assert departure is not None
    assert departure.is_finished


async def test_second_move_finds_that_all_is_done(file: Path, url: str, clock: StoreClock) -> None:
    """Even when the target is in use by then."""
    await filled(file, clock)
    first = await moved(file, url, clock)
    async with in_database(url, clock) as backend:
        await accepted(backend.store, a_message())

    again = await moved(file, url, clock)

    assert again.counts == first.counts
    assert (first.again, again.again) == (False, True)


async def test_moved_source_refuses_writes(file: Path, url: str, clock: StoreClock) -> None:
    """In processes that have it open, and in those that open it later; reading goes on."""
    async with on_file(file, clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        [known] = await accepted(backend.store, a_message())
        await moved(file, url, clock)

        with pytest.raises(StoreMoved, match="went to postgresql://"):
            await backend.store.accept([a_message()])
        with pytest.raises(StoreMoved, match="went to postgresql://"):
            await claim(backend.store)
        with pytest.raises(StoreMoved, match="go to postgresql://"):
            await backend.store.accept([])  # as the health check does
        with pytest.raises(StoreMoved):
            await backend.store.cancel([known], tenant=ACME)
    async with on_file(file, clock) as backend:
        with pytest.raises(StoreMoved):
            await backend.tenants.define(tenants_named([BRASA]))
        assert await backend.reading.message(known) is not None


async def test_doctor_reports_that_the_file_is_closed(
    file: Path, url: str, clock: StoreClock
) -> None:
    """With the new location."""
    await filled(file, clock)
    await moved(file, url, clock)

    found = {each.check: each for each in examine(file, min_free_bytes=0, clock=clock)}

    assert found["writable"].level is Level.FAIL
    assert "postgresql://" in found["writable"].told


async def test_messages_in_flight_are_waited_for(file: Path, url: str, clock: StoreClock) -> None:
    """Nothing new is accepted or claimed meanwhile; their ends are moved, too."""
    async with on_file(file, clock) as backend, ends(file, url, clock) as (source, target):
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *messages(2))
        job = await claimed_alone(backend.store, limit=1)
        await target.begin("move-1", source=source.name)
        source.begin("move-1", to=target.name)

        left = source.close()
        with pytest.raises(StoreMoved, match="go to postgresql://"):
            await backend.store.accept([a_message()])
        with pytest.raises(StoreMoved):
            await claim(backend.store)
        await settled(backend.store, job, sent())
        await move(source, target, Heard())

    assert left == InFlight(1, clock.at(_ONCE))
    async with in_database(url, clock) as backend:
        states = await backend.reading.states()
    assert states == {State.SENT: 1, State.ENQUEUED: 1}


async def test_expired_lease_is_not_waited_for(file: Path, url: str, clock: StoreClock) -> None:
    """Its worker is gone, and its late result is refused."""
    async with on_file(file, clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, a_message())
        job = await claimed_alone(backend.store)
        clock.advance(_ONCE)

        await moved(file, url, clock)

        with pytest.raises(StoreMoved):
            await settled(backend.store, job, sent())
    async with in_database(url, clock) as backend:
        again = await claimed_alone(backend.store)
    assert (again.lease.job, again.claims) == (job.lease.job, 2)


async def test_target_being_filled_does_nothing_else(
    file: Path, url: str, clock: StoreClock
) -> None:
    """A process that starts too early gets an error; nothing is sent before all is there."""
    await filled(file, clock)
    async with ends(file, url, clock) as (source, target):
        _kill(target, after=len(CARRIED), is_kept=True)
        with pytest.raises(Killed):
            await move(source, target, Heard())

    async with in_database(url, clock) as backend:
        with pytest.raises(StoreUnavailable, match="not finished"):
            await backend.tenants.define(tenants_named([ACME]))
        with pytest.raises(StoreUnavailable, match="not finished"):
            await claim(backend.store)


async def test_target_in_use_is_refused(file: Path, url: str, clock: StoreClock) -> None:
    """Before anything is closed."""
    await filled(file, clock)
    async with in_database(url, clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))

    with pytest.raises(CannotMove, match="1 tenants"):
        await moved(file, url, clock)

    async with on_file(file, clock) as backend:
        await accepted(backend.store, a_message())
    async with in_database(url, clock) as backend:
        await accepted(backend.store, a_message())


async def test_settings_written_to_the_target_are_replaced(
    file: Path, url: str, clock: StoreClock
) -> None:
    """Every process that starts writes tiers and limits: that alone does not count as use."""
    await filled(file, clock)
    async with in_database(url, clock) as backend:
        await backend.tenants.weigh_tier("gold", 1.0)
        await backend.tenants.limit(EMAIL, None)

    done = await moved(file, url, clock)

    assert done.counts["tiers"] == 1


async def test_missing_rows_are_reported(file: Path, url: str, clock: StoreClock) -> None:
    """The target stays closed, and the source can be opened again."""
    await filled(file, clock)
    async with ends(file, url, clock) as (source, target):
        _lose(source, "events")

        with pytest.raises(CannotMove, match=r"events: \d+ before, \d+ after"):
            await move(source, target, Heard())

        await take_back(source, target)
    await moved(file, url, clock)


async def test_move_can_be_undone(file: Path, url: str, clock: StoreClock) -> None:
    """The source works again, the target does nothing; a later move starts from the beginning."""
    await filled(file, clock)
    await moved(file, url, clock)

    async with ends(file, url, clock) as (source, target):
        to = target.name
        await take_back(source, target)

    async with in_database(url, clock) as backend:
        with pytest.raises(StoreUnavailable, match="undone"):
            await claim(backend.store)
    async with on_file(file, clock) as backend:
        await accepted(backend.store, a_message())
        before = await read(backend)
        [undone] = (await backend.audit.list(AuditFilter(kind="store"))).rows
    assert (undone.action, undone.object) == ("reopen", f"sqlite:///{file}")
    assert undone.before == {"to": to, "phase": "finished"}
    await moved(file, url, clock)
    async with in_database(url, clock) as backend:
        after = await read(backend)
    assert {name for name in before if before[name] != after[name]} == set()


async def _claim_one(backend: Backend) -> None:
    await claim(backend.store, limit=1)


async def _send_one(backend: Backend) -> None:
    await settled(backend.store, await claimed_alone(backend.store, limit=1), sent())


async def _accept_one(backend: Backend) -> None:
    await accepted(backend.store, a_message())


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (_claim_one, "0 messages accepted, 0 changed, 1 in flight"),
        (_send_one, "0 messages accepted, 1 changed, 0 in flight"),
        (_accept_one, "1 messages accepted, 0 changed, 0 in flight"),
    ],
)
async def test_move_to_a_used_target_cannot_be_undone(
    file: Path, url: str, clock: StoreClock, use: Callable[[Backend], Awaitable[None]], told: str
) -> None:
    """Its sent messages would be sent again, and its new ones lost; it stays open."""
    await filled(file, clock)
    await moved(file, url, clock)
    async with in_database(url, clock) as backend:
        await use(backend)

    async with ends(file, url, clock) as (source, target):
        with pytest.raises(CannotMove, match=told):
            await take_back(source, target)

    async with in_database(url, clock) as backend:
        await accepted(backend.store, a_message())


async def test_move_cannot_change_its_target(file: Path, url: str, clock: StoreClock) -> None:
    """Half of it would be here and half there."""
    await filled(file, clock)
    await moved(file, url, clock)
    with a_migrated_database() as other:
        with pytest.raises(CannotMove, match="--reopen"):
            await moved(file, other, clock)

        async with ends(file, other, clock) as (source, target):
            with pytest.raises(CannotMove, match="--reopen"):
                await take_back(source, target)


async def test_jobs_in_a_separate_queue_are_brought_back_first(
    file: Path, url: str, clock: StoreClock
) -> None:
    """They may be in flight there, without a trace in the file."""
    async with open_sqlite_ledger(file, SqliteOptions(clock=clock)):
        with pytest.raises(CannotMove, match="queue elsewhere"):
            await moved(file, url, clock)

    async with on_file(file, clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
    done = await moved(file, url, clock)

    assert done.counts["tenants"] == 1


async def test_two_moves_at_once_do_not_mix(file: Path, url: str, clock: StoreClock) -> None:
    """The slower one stops."""
    await filled(file, clock)
    async with ends(file, url, clock) as slow, ends(file, url, clock) as quick:
        _kill(slow[1], after=3, is_kept=True)
        with pytest.raises(Killed):
            await move(*slow, Heard())
        await move(*quick, Heard())

        page = slow[0].page("messages", None)
        with pytest.raises(CannotMove, match="another carteiro move"):
            await PostgresTarget.take(slow[1], "messages", page)


async def test_move_works_through_a_pooler(file: Path, url: str, clock: StoreClock) -> None:
    """One that gives each transaction any free connection."""
    before = await filled(file, clock)
    options = PostgresOptions(clock=clock, prepared_statements=False)
    with a_pgbouncer(shared_postgres()) as pooler:
        pooled = pooler.url(url.rpartition("/")[2])
        async with open_target(pooled, options) as target:
            with open_source(file, clock=clock) as source:
                await move(source, target, Heard())

    async with in_database(url, clock) as backend:
        after = await read(backend)
    assert {name for name in before if before[name] != after[name]} == set()


async def test_move_leaves_nothing_behind(file: Path, url: str, clock: StoreClock) -> None:
    """The fence is removed with the move."""
    await filled(file, clock)

    await moved(file, url, clock)

    with psycopg.connect(url) as connection:
        fences = connection.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgname = 'unfinished_move'"
        ).fetchone()
    assert fences == (0,)


def _kill(target: PostgresTarget, *, after: int, is_kept: bool) -> None:
    """End the move after this many pages: before the next one is stored, or after it."""
    take, taken = target.take, 0

    async def last(table: str, page: Rows) -> None:
        nonlocal taken
        if taken < after or is_kept:
            await take(table, page)
        taken += 1
        if taken > after:
            raise Killed

    target.take = last  # type: ignore[method-assign]


def _lose(source: SqliteSource, lost: str) -> None:
    """Lose the first row of each page of the source."""
    page = source.page

    def fewer(table: str, after: list[object] | None) -> Rows:
        found = page(table, after)
        return found._replace(rows=found.rows[1:]) if table == lost else found

    source.page = fewer  # type: ignore[method-assign]


def _killed(*_: object, **__: object) -> None:
    raise Killed
