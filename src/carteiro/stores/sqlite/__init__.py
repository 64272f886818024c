"""Ledger and queue in one SQLite file: the embedded default."""

from carteiro.stores.sqlite.setup import open_sqlite

__all__ = ["open_sqlite"]
