"""Maintenance and dead letters of several processes at once on Postgres, and the server's own behaviour."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from carteiro.errors import CannotBackUp
from carteiro.model import ZERO, ApiLimits, IdempotencyKey, MessageId, RedriveAnswer
from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, open_postgres
from support.builders import ACME, BRASA, a_message, tenants_named
from support.burying import buried, found
from support.clock import StoreClock
from support.postgres_server import OWNERS
from support.shared_servers import a_migrated_database
from support.steps import accepted

pytestmark = pytest.mark.servers


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with only the schema, with any owner."""
    with a_migrated_database(request.param) as made:
        yield made


@pytest.fixture
async def backend(url: str) -> AsyncIterator[Backend]:
    """A store that knows two tenants."""
    async with open_postgres(url, PostgresOptions(clock=StoreClock())) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


def _names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def _hold(connection: "psycopg.Connection[tuple[object, ...]]", message: MessageId) -> None:
    """Like a redrive that has not ended yet."""
    connection.execute(
        "SELECT FROM carteiro.entries JOIN carteiro.messages ON no = message_no WHERE id = %s FOR UPDATE OF entries",
        (message,),
    )


async def test_message_being_redriven_is_not_pruned(backend: Backend, url: str) -> None:
    """Nor does pruning wait for it: the next pass takes it."""
    message = await buried(backend)
    await backend.dead_letters.drop([message])
    with psycopg.connect(url) as other:
        _hold(other, message)
        meanwhile = await backend.upkeep.prune(bodies=ZERO, histories=ZERO)
        other.rollback()

    afterwards = await backend.upkeep.prune(bodies=ZERO, histories=ZERO)

    assert (meanwhile.bodies, meanwhile.histories) == (0, 0)
    assert afterwards.histories == 1
    assert await backend.dead_letters.redrive([message], by="ana") == [RedriveAnswer.NOT_FOUND]


async def test_reason_with_a_character_that_text_cannot_hold_is_searched(
    backend: Backend,
) -> None:
    """It is stored in JSON, like all others."""
    odd = await buried(backend, failure={"reason": "Bad\0reply"})
    plain = await buried(backend, failure={"reason": "No such mailbox"})

    assert await found(backend, text="mailbox") == [plain]
    assert await found(backend, text="reply") == [odd]


async def test_server_is_backed_up_by_its_own_tools(backend: Backend, tmp_path: Path) -> None:
    """The error says so, and nothing is written."""
    with pytest.raises(CannotBackUp, match="pg_dump"):
        await backend.upkeep.backup(tmp_path / "copy", lambda _: None)

    assert _names_in(tmp_path) == []


async def test_locks_of_accepts_do_not_pile_up(backend: Backend, url: str) -> None:
    """Maintenance deletes the free ones, and waits for none."""
    key = IdempotencyKey("key", "digest")
    await accepted(backend.store, a_message(key=key), a_message(limits=ApiLimits()))
    with psycopg.connect(url) as other:
        other.execute("SELECT FROM carteiro.door_locks ORDER BY name LIMIT 1 FOR UPDATE")
        await backend.upkeep.prune(bodies=None, histories=None)
        left = other.execute("SELECT count(*) FROM carteiro.door_locks").fetchone()

    assert left == (1,)
