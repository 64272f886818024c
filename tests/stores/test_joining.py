"""Sending inside a transaction of the application: accepted when that commits."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from carteiro.app import Carteiro
from carteiro.errors import CannotJoin, KeyReused
from carteiro.model import Accepted, MessageId, Replayed
from support.shared_servers import shared_postgres
from support.table_queue import a_shared_database, an_office

pytestmark = pytest.mark.servers

EMAIL: dict[str, Any] = {"to": "ana@example.com", "subject": "Order 17", "text": "Thank you!"}


@pytest.fixture
def url() -> Iterator[str]:
    """A database with only the schema."""
    with a_shared_database() as made:
        yield made


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _of_a_pool(url: str) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as connection:
        yield connection


@asynccontextmanager
async def _with_json_of_its_own(url: str) -> AsyncIterator[Any]:
    async with _asyncpg(url) as connection:
        for name in ("json", "jsonb"):
            await connection.set_type_codec(
                name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
            )
        yield connection


@asynccontextmanager
async def _sqlalchemy(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def _sqlalchemy_session(url: str) -> AsyncIterator[Any]:
    async with _sqlalchemy(url) as connection, AsyncSession(bind=connection.engine) as session:
        yield session


DRIVERS = (_asyncpg, _of_a_pool, _with_json_of_its_own)
LIBRARIES = (_sqlalchemy, _sqlalchemy_session)


async def _states(post: Carteiro) -> int:
    return sum((await post.backend.reading.states()).values())


@pytest.mark.parametrize("connected", DRIVERS)
@pytest.mark.parametrize("commits", [True, False])
async def test_email_joins_a_transaction_of_asyncpg(
    url: str, connected: Any, *, commits: bool
) -> None:
    """Its commit sends it, its rollback leaves nothing."""
    async with an_office(url) as post, connected(url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        answer = await post.send(tenant="default", connection=connection, **EMAIL)
        before = await _states(post)
        await (transaction.commit() if commits else transaction.rollback())

        states = await post.work_off()

        events = await post.backend.reading.events(answer.id)
    assert isinstance(answer, Accepted)
    assert before == 0
    assert sum(states.values()) == commits
    assert [dict(each.metadata).keys() for each in events[:1]] == [{"requestId"}] * commits


@pytest.mark.parametrize("connected", LIBRARIES)
@pytest.mark.parametrize("commits", [True, False])
async def test_email_joins_a_transaction_of_sqlalchemy(
    url: str, connected: Any, *, commits: bool
) -> None:
    """Also as the first statement of the transaction."""
    async with an_office(url) as post, connected(url) as connection:
        await post.send(tenant="default", connection=connection, **EMAIL)
        before = await _states(post)
        await (connection.commit() if commits else connection.rollback())

        states = await post.work_off()
    assert before == 0
    assert sum(states.values()) == commits


async def test_many_emails_join_a_transaction(url: str) -> None:
    """Answered one by one; a known key is replayed."""
    async with an_office(url) as post, _asyncpg(url) as connection:
        first = await post.send(tenant="default", idempotency_key="k", **EMAIL)
        items = [{"tenant": "default", **EMAIL}] * 3 + [
            {"tenant": "default", "idempotency_key": "k", **EMAIL},
            {"tenant": "default", "to": "nobody"},
        ]
        async with connection.transaction():
            answers = await post.send_many(items, connection=connection)
            other = EMAIL | {"tenant": "default", "idempotency_key": "k", "subject": "Another"}
            with pytest.raises(KeyReused):
                await post.send(connection=connection, **other)

        stored = await _states(post)
    assert [isinstance(each, Accepted) for each in answers] == [True] * 3 + [False] * 2
    assert isinstance(answers[3], Replayed)
    assert answers[3].id == first.id
    assert stored == 4


async def test_new_tenant_is_created_before(url: str) -> None:
    """In a separate transaction: others must not wait for the application's."""
    async with an_office(url) as post, _asyncpg(url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await post.send(tenant="brand-new", connection=connection, **EMAIL)
        other = await post.send(tenant="brand-new", **EMAIL)
        await transaction.rollback()

        assert await post.backend.reading.message(MessageId(other.id)) is not None
        assert await _states(post) == 1


async def test_connection_outside_a_transaction_is_refused(url: str) -> None:
    """It would commit at once, against the request."""
    async with an_office(url) as post, _asyncpg(url) as connection:
        with pytest.raises(CannotJoin, match="in a transaction"):
            await post.send(tenant="default", connection=connection, **EMAIL)

        assert await _states(post) == 0


async def test_object_that_is_not_a_connection_is_refused(url: str) -> None:
    """The error names the valid types."""
    async with an_office(url) as post:
        with pytest.raises(CannotJoin, match="AsyncSession"):
            await post.send(tenant="default", connection=object(), **EMAIL)


async def test_other_database_is_refused(url: str) -> None:
    """One without Carteiro's schema."""
    with shared_postgres().a_database() as elsewhere:
        async with (
            an_office(url) as post,
            _asyncpg(elsewhere) as connection,
            connection.transaction(),
        ):
            with pytest.raises(CannotJoin, match="a database that Carteiro is not in"):
                await post.send(tenant="default", connection=connection, **EMAIL)


async def test_other_stores_have_no_transaction_to_join() -> None:
    """The error names the one that has."""
    async with Carteiro.open("memory://") as post:
        with pytest.raises(CannotJoin, match="postgresql://"):
            await post.send(tenant="default", connection=object(), **EMAIL)

        assert await _states(post) == 0
