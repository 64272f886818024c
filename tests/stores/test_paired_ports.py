"""A pair: which of its ports are those of the ledger, as they are."""

from dataclasses import fields
from pathlib import Path

from carteiro.ports import Backend
from carteiro.stores.paired_ports import open_paired
from carteiro.stores.redis import open_redis
from carteiro.stores.sqlite import open_sqlite_ledger
from support.quick_store import sqlite_file


async def test_ports_without_a_queue_are_the_ledgers_own(tmp_path: Path) -> None:
    """The contract suite runs these on ledgers alone: `_OF_THE_LEDGER` in `tests/contract/conftest.py`."""
    ledger = open_sqlite_ledger(sqlite_file(tmp_path))
    async with open_paired(ledger, open_redis("redis://127.0.0.1:1/0")) as pair:
        same = {
            each.name
            for each in fields(Backend)
            if getattr(pair.backend, each.name)
            is getattr(pair.ledger.backend, each.name)
            is not None
        }

    assert same == {"inbox", "keys", "marks", "rates", "suppressions", "templates"}
