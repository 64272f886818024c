"""Events on Postgres lie in parts that are dropped as a whole: nothing is left to be vacuumed, nobody waits."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib import resources

import asyncpg
import psycopg
import pytest

from carteiro.model import EventType, MessageId
from carteiro.ports import Backend
from carteiro.ports.upkeep import Pruned
from carteiro.stores.postgres import PostgresOptions, migrate, open_postgres
from support.builders import ACME, BRASA, a_message, dead, messages, sent, tenants_named
from support.clock import StoreClock
from support.shared_servers import shared_postgres
from support.steps import accepted, attempted, claimed, settled

_DAY = timedelta(days=1)
_MESSAGES = 5


@pytest.fixture
def clock() -> StoreClock:
    """What the store takes for the time."""
    return StoreClock()


@pytest.fixture
async def backend(url: str, clock: StoreClock) -> AsyncIterator[Backend]:
    """A store that knows two tenants."""
    async with open_postgres(url, PostgresOptions(clock=clock)) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


def _asked(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def _parts(url: str) -> list[object]:
    """The tables that events lie in, by the first number of each; the rest is not among them."""
    found = _asked(url, "SELECT from_no FROM carteiro.event_parts ORDER BY from_no")
    tables = _asked(
        url,
        "SELECT substr(inhrelid::regclass::text, 17)::bigint FROM pg_inherits"
        " WHERE inhparent = 'carteiro.events'::regclass"
        " AND inhrelid <> 'carteiro.events_rest'::regclass ORDER BY 1",
    )
    assert found == tables
    return [each for (each,) in found]


def _events(url: str, table: str = "events") -> object:
    [(count,)] = _asked(url, f"SELECT count(*) FROM carteiro.{table}")
    return count


def _fill_part(url: str) -> None:
    """As if all numbers of the first part had been given out."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT setval('carteiro.message_no', min(to_no) + 1) FROM carteiro.event_parts"
        )


async def _pruned(backend: Backend) -> Pruned:
    return await backend.upkeep.prune(bodies=None, histories=_DAY)


async def _all_sent(backend: Backend) -> None:
    await accepted(backend.store, *messages(_MESSAGES))
    for job in await claimed(backend.store):
        await settled(backend.store, job, sent())


async def test_what_all_is_past_its_retention_is_dropped_at_once(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """The pass that forgets the last message of a part deletes no event: it drops the table."""
    await _all_sent(backend)
    _fill_part(url)
    clock.advance(_DAY)
    with psycopg.connect(url) as reader:  # or there would be nothing to look at
        [before] = reader.execute("SELECT count(*) FROM carteiro.events_0").fetchall()
        gone = await _pruned(backend)
        [left] = reader.execute("SELECT count(*), count(xmax <> 0 OR NULL) FROM carteiro.events_0")

    await _pruned(backend)

    assert gone.histories == _MESSAGES
    assert left == (*before, 0)
    assert 0 not in _parts(url)
    assert _events(url) == 0
    assert _asked(url, "SELECT to_regclass('carteiro.events_0')") == [(None,)]


async def test_a_part_that_is_still_being_filled_is_pruned_row_by_row(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """It may take years to fill: events are not kept that long."""
    await _all_sent(backend)
    clock.advance(_DAY)

    await _pruned(backend)

    assert _events(url) == 0
    assert 0 in _parts(url)


async def test_a_part_that_took_long_to_fill_is_pruned_row_by_row(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """What is past its retention does not wait for what came days later."""
    await _all_sent(backend)
    clock.advance(3 * _DAY)
    await accepted(backend.store, a_message())
    _fill_part(url)

    await _pruned(backend)

    assert _events(url) == len([EventType.ENQUEUED])
    assert 0 in _parts(url)


async def test_what_is_left_of_a_part_is_carried_over(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """A dead letter keeps its timeline, and not the part that it was in."""
    [kept] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    await _all_sent(backend)
    _fill_part(url)
    timeline = await backend.reading.events(kept)
    await _pruned(backend)
    clock.advance(_DAY)
    await _pruned(backend)
    is_waited_for = 0 in _parts(url)
    clock.advance(2 * _DAY)

    await _pruned(backend)

    assert is_waited_for
    assert 0 not in _parts(url)
    assert await backend.reading.events(kept) == timeline
    assert _events(url, "events_rest") == len(timeline) == _events(url)


async def test_what_many_others_keep_goes_row_by_row_in_the_end(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """Events of messages that are gone are not kept for as long as others stay."""
    await _all_sent(backend)
    waiting = await accepted(backend.store, *(a_message(ACME) for _ in range(1001)))
    _fill_part(url)
    clock.advance(_DAY)
    await _pruned(backend)
    before = _events(url)
    clock.advance(3 * _DAY)

    await _pruned(backend)

    assert before != len(waiting)
    assert _events(url) == len(waiting)
    assert 0 in _parts(url)


async def test_a_part_that_was_pruned_row_by_row_goes_when_it_is_empty(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """Or a database that grows slowly would have more and more of them."""
    await _all_sent(backend)
    clock.advance(_DAY)
    await _pruned(backend)
    _fill_part(url)

    await _pruned(backend)

    assert 0 not in _parts(url)


async def test_nobody_waits_for_a_part_that_is_in_use(
    backend: Backend, url: str, clock: StoreClock
) -> None:
    """Whoever reads events keeps the part, and whoever writes meanwhile does not wait for long."""
    await _all_sent(backend)
    _fill_part(url)
    clock.advance(_DAY)
    with psycopg.connect(url) as reader:
        reader.execute("SELECT count(*) FROM carteiro.events")
        _, new = await asyncio.gather(_pruned(backend), accepted(backend.store, a_message()))
        kept = 0 in _parts(url)

    await _pruned(backend)

    assert kept
    assert 0 not in _parts(url)
    assert await _types(backend, new[0]) == [EventType.ENQUEUED]


async def _types(backend: Backend, message: MessageId) -> list[EventType]:
    return [event.type for event in await backend.reading.events(message)]


async def test_parts_are_made_ahead_once_however_many_do_it(backend: Backend, url: str) -> None:
    """Without any retention, too: it may be set later."""
    prune = backend.upkeep.prune
    await asyncio.gather(*(prune(bodies=None, histories=None) for _ in range(4)))
    made = _parts(url)

    await prune(bodies=None, histories=None)

    assert len(made) > 1
    assert _parts(url) == made


async def test_numbers_that_no_part_was_made_for_have_their_events_in_the_rest(
    backend: Backend, url: str
) -> None:
    """After weeks without upkeep, or a flood, the next part begins behind them."""
    _asked(url, "SELECT setval('carteiro.message_no', 50000000)")
    [message] = await accepted(backend.store, a_message())
    in_the_rest = _events(url, "events_rest")

    await _pruned(backend)
    await attempted(backend.store, sent())

    assert in_the_rest == 1
    assert (await _types(backend, message))[0] is EventType.ENQUEUED
    assert _events(url, "events_rest") == len(await _types(backend, message))
    newest = _parts(url)[-1]
    assert isinstance(newest, int)
    assert newest > 50_000_000


async def test_erasing_does_not_wait_for_a_part(backend: Backend, url: str) -> None:
    """Who asks to be forgotten is, at once."""
    await _all_sent(backend)
    _fill_part(url)
    await _pruned(backend)

    await backend.tenants.erase(ACME)

    assert _events(url) == 0


async def _as_before(url: str) -> None:
    """The schema of the version that had one table of events, with a message in it."""
    folder = resources.files("carteiro.stores.postgres") / "migrations"
    before = (each for each in folder.iterdir() if each.name < "0008")
    scripts = sorted(before, key=lambda each: each.name)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE SCHEMA carteiro")
        await connection.execute(
            "CREATE TABLE carteiro.migrations (number int PRIMARY KEY, name text)"
        )
        for number, script in enumerate(scripts, 1):
            await connection.execute(script.read_text("utf-8"))
            await connection.execute(
                "INSERT INTO carteiro.migrations VALUES ($1, $2)", number, script.name
            )
        await connection.execute(
            "INSERT INTO carteiro.events (message_no, type, metadata, created_at) VALUES (7, 'ENQUEUED', '{}', 1)"
        )
    finally:
        await connection.close()


async def test_events_of_a_database_from_before_stay_where_they_are() -> None:
    """The table as it was becomes the first part; whoever wrote to it goes on, and new ones are numbered after."""
    add = "INSERT INTO carteiro.events (message_no, type, metadata, created_at) VALUES (7, 'SENT', '{}', 2)"
    with (
        shared_postgres().a_database(_as_before) as url,
        psycopg.connect(url, autocommit=True) as old,
    ):
        [(table,)] = _asked(url, "SELECT 'carteiro.events'::regclass::oid")
        old.execute(add, prepare=True)

        await migrate(url)
        old.execute(add, prepare=True)

        found = _asked(url, "SELECT type FROM carteiro.events WHERE message_no = 7 ORDER BY id")
        assert found == [("ENQUEUED",), ("SENT",), ("SENT",)]
        assert _asked(url, "SELECT 'carteiro.events_0'::regclass::oid") == [(table,)]
        assert _views_of_events(url) == {"email_events", "email_queue"}


def _views_of_events(url: str) -> set[object]:
    """Views that see all parts."""
    found = _asked(
        url,
        "SELECT DISTINCT c.relname FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid"
        " JOIN pg_class AS c ON c.oid = r.ev_class"
        " WHERE d.refobjid = 'carteiro.events'::regclass AND c.relkind = 'v'",
    )
    return {name for (name,) in found}
