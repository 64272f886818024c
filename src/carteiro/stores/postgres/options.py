"""Options of the store, in addition to its address."""

from collections.abc import Callable
from datetime import timedelta

from carteiro.model import value
from carteiro.stores.sql.options import SqlOptions


@value
class PostgresOptions(SqlOptions):
    """In addition: the clock (None: the server's), and how to connect."""

    clock: Callable[[], int] | None = None
    connections: int = 10
    command_timeout: timedelta = timedelta(seconds=30)
    # Off behind a pooler that shares connections between transactions.
    prepared_statements: bool = True
