"""Ledger and queue in one SQLite file: the embedded default."""

from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.setup import open_sqlite, open_sqlite_ledger

__all__ = ["SqliteOptions", "open_sqlite", "open_sqlite_ledger"]
