"""How SQLite finds rows: by whole keys, whatever the size of the backlog and without statistics."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from carteiro.stores.sqlite.opening import connect, migrate, sql

_QUEUE_STATEMENTS = (
    "claim_alarms",
    "claim_due",
    "claim_due_or_lost",
    "claim_due_seats",
    "claim_heads",
    "claim_in_flight",
    "claim_take",
    "declare",
    "drop_parked",
    "drop_ready",
    "expire_find",
    "extend",
    "hold_parked",
    "load_entries",
    "park_settled",
    "ready_parked",
    "release",
    "settle_retried",
    "settle_sent",
    "unsettled",
)
_WHOLE_KEY = "ready USING PRIMARY KEY (tenant=? AND kind=? AND priority=? AND due_at=? AND id=?)"


@pytest.fixture
def empty_file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A file with the schema and nothing else."""
    file = tmp_path / "post.db"
    db = connect(file, busy_timeout_ms=1000)
    migrate(db, file)
    yield db
    db.close()


@pytest.mark.parametrize("operation", _QUEUE_STATEMENTS)
def test_no_statement_of_the_queue_walks_a_table(
    empty_file: sqlite3.Connection, operation: str
) -> None:
    """What waits must not be looked at one by one: only the lists that were handed in may be."""
    scans = [step for step in _plan(empty_file, operation) if re.match(r"SCAN (?!\()", step)]

    assert [step for step in scans if "VIRTUAL TABLE" not in step] == []


@pytest.mark.parametrize("operation", ["claim_take", "drop_ready"])
def test_a_ready_job_is_found_by_its_whole_key(
    empty_file: sqlite3.Connection, operation: str
) -> None:
    """By tenant and kind alone, each job would cost a walk along its tenant's backlog."""
    assert f"SEARCH {_WHOLE_KEY}" in _plan(empty_file, operation)


def _plan(db: sqlite3.Connection, operation: str) -> list[str]:
    statement = sql(operation)
    names = re.findall(r":([a-z_]+)", statement)
    return [
        row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", dict.fromkeys(names, "[]"))
    ]
