"""An application that speaks SQL, and the database that it shares with an app."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier

from carteiro.app import Carteiro
from carteiro.model import NewTemplate, TenantId
from carteiro.stores.postgres import migrate
from support.shared_servers import shared_postgres

TEMPLATE = "welcome_user"
WORDS = '{"user_data": {"full_name": "Ana"}}'


@contextmanager
def a_shared_database() -> Iterator[str]:
    """The URL of a database with only the schema."""
    with shared_postgres().a_database(migrate) as url:
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
