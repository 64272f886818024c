"""Accepts inside the caller's own transaction: of asyncpg, or of SQLAlchemy over asyncpg."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from carteiro.errors import CannotJoin
from carteiro.model import AcceptAnswer, NewMessage
from carteiro.stores.postgres.accept import accept_within
from carteiro.stores.postgres.database import Database, Session

_NOT_THERE = (
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedFunctionError,
)


class PostgresJoining:
    """See `carteiro.ports.joining.Joining` for what it promises; the caller's commit notifies the workers."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def accept(self, connection: object, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """As `Store.accept`, in the transaction of ``connection``: its commit commits, its rollback undoes."""
        driver = await _driver_connection(connection)
        now = await self._db.now()
        with self._db.in_our_words():
            try:
                return await accept_within(Session(driver), new, now) if new else []
            except _NOT_THERE as error:
                text = f"connection= is to a database that Carteiro is not in ({error}); its store is {self._db.name}"
                raise CannotJoin(text) from error


async def _driver_connection(connection: Any) -> Any:  # noqa: ANN401 - theirs have no type in common
    """The underlying connection of asyncpg, in its transaction."""
    if hasattr(connection, "get_bind"):  # an AsyncSession: its connection is in its transaction
        connection = await connection.connection()
    if hasattr(connection, "get_raw_connection"):  # an AsyncConnection
        # Its transaction begins in the driver with the first statement.
        await connection.exec_driver_sql("SELECT")
        connection = (await connection.get_raw_connection()).driver_connection
    if not hasattr(connection, "is_in_transaction"):
        kind = type(connection).__name__
        text = f"connection= takes one of asyncpg, or SQLAlchemy's AsyncConnection or AsyncSession over it, not {kind}"
        raise CannotJoin(text)
    if not connection.is_in_transaction():
        raise CannotJoin("connection= must be in a transaction: begin one, and commit it")
    return connection
