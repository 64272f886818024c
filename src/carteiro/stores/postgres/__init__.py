"""Ledger and queue in one PostgreSQL database: for many workers on many machines."""

from carteiro.stores.postgres.examine import examine
from carteiro.stores.postgres.migrating import found_fairness, found_version, migrate
from carteiro.stores.postgres.moving import open_target
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.setup import open_postgres, open_postgres_ledger

__all__ = [
    "PostgresOptions",
    "examine",
    "found_fairness",
    "found_version",
    "migrate",
    "open_postgres",
    "open_postgres_ledger",
    "open_target",
]
