"""An application that speaks SQL, and the database that it shares with an app."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from carteiro.app import Carteiro
from carteiro.maintenance.requests import apply_all
from carteiro.model import EventType, MessageId, NewTemplate, TenantId
from carteiro.providers.email_kind import table_queue_wait
from support.shared_servers import a_migrated_database

TEMPLATE = "welcome_user"
WORDS = '{"user_data": {"full_name": "Ana"}}'


@contextmanager
def a_shared_database() -> Iterator[str]:
    """The URL of a database with only the schema."""
    with a_migrated_database() as url:
        yield url


@asynccontextmanager
async def an_office(url: str, *tenants: str, **settings: Any) -> AsyncIterator[Carteiro]:
    """An app on the database, whose tenants all have the template."""
    async with Carteiro.open(url, retention={"bodies_ms": 0}, **settings) as post:
        names = [TenantId(each) for each in tenants or ("default",)]
        await post.backend.tenants.ensure(names)
        for each in names:
            await post.backend.templates.define(a_template(each))
        yield post


def a_template(tenant: TenantId, **changes: Any) -> NewTemplate:
    """Greets somebody by name."""
    said = {"type": TEMPLATE, "subject": "Hello {{ user_data.full_name }}", "text": "Hi", **changes}
    return NewTemplate(tenant=tenant, **said)


class Application:
    """One connection of an application."""

    def __init__(self, connection: "psycopg.Connection[dict[str, Any]]") -> None:
        self.connection = connection

    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """The rows of a statement, if it returns any."""
        cursor = self.connection.execute(sql, parameters or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, sql: str, *parameters: object) -> Any:
        """The one value of a statement."""
        [row] = self.rows(sql, *parameters)
        [value] = row.values()
        return value

    def listen(self) -> None:
        """Receive the notifications between processes."""
        channel = self.value("SELECT channel FROM carteiro.wake_channel")
        self.connection.execute(SQL("LISTEN {}").format(Identifier(channel)))

    def enqueue(self, to: str = "ana@example.com", *, user: UUID | None = None) -> UUID:
        """Enqueue an e-mail by the function."""
        sql = "SELECT enqueue_email(%s, %s, %s, %s::jsonb)"
        made: UUID = self.value(sql, user or uuid4(), TEMPLATE, to, WORDS)
        return made

    def row(self, identity: UUID) -> dict[str, Any]:
        """A row of the table queue."""
        [row] = self.rows("SELECT * FROM email_queue WHERE id = %s", identity)
        return row

    def update(self, identity: UUID, assignment: str) -> int:
        """Update a row; the number of updated rows."""
        sql = f"UPDATE email_queue SET {assignment} WHERE id = %s"
        return self.connection.execute(sql, (identity,)).rowcount


@contextmanager
def an_application(url: str, *, autocommit: bool = True) -> Iterator[Application]:
    """A connected application; without autocommit its transaction is rolled back at the end."""
    connection = psycopg.connect(url, autocommit=autocommit, row_factory=dict_row)
    try:
        yield Application(connection)
    finally:
        connection.close()


async def events_of(post: Carteiro, identity: UUID) -> list[EventType]:
    return [each.type for each in await post.backend.reading.events(MessageId(str(identity)))]


async def apply_requests(post: Carteiro) -> None:
    """Apply requests, as a worker does after a notification."""
    assert post.backend.table_queue is not None
    await apply_all(post.backend.table_queue, table_queue_wait)


async def try_now(post: Carteiro, app: Application, identity: UUID) -> None:
    """Make a row due now."""
    app.update(identity, "next_retry_at = now()")
    await post.work_off()


def jobs_in(app: Application) -> int:
    """The number of jobs in the ring, once its notes are read."""
    jobs = app.value("SELECT coalesce(sum(jobs), 0)::integer FROM carteiro.seats_and_notes")
    held = app.value(
        "SELECT (SELECT count(*) FROM carteiro.ready) + (SELECT count(*) FROM carteiro.delayed)"
        " + (SELECT coalesce(sum(cardinality(numbers)), 0) FROM carteiro.leased)"
    )
    assert jobs == held
    return int(held)
