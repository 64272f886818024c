"""How SQLite finds dead letters and templates: by an index that leads to them, and to no others."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from carteiro.stores.sqlite.opening import connect, migrate, sql

_LED_BY = {
    "dead_letters_find": "dead_letters_by_age (moved_at>? AND (moved_at,message_id)<(?,?))",
    "dead_letters_find_by_code": "dead_letters_with_code (code=? AND moved_at>?",
    "dead_letters_find_by_reason": "dead_letters_for_reason (reason=? AND moved_at>?",
    "dead_letters_find_by_tenant": "dead_letters_of_tenant (tenant=? AND moved_at>?",
    "dead_letters_oldest": "dead_letters_of_tenant (tenant=?)",
    "dead_letters_outlived": "dead_letters_by_end (<expr><?)",
}
_BY_KEY = (
    "dead_letters_drop",
    "dead_letters_load",
    "dead_letters_restore",
    "redrive_contents",
    "redrive_mark",
    "revise_content",
    "revise_message",
    "templates_define",
    "templates_delete",
    "templates_find",
    "templates_forget",
    "templates_forget_versions",
    "templates_versions",
)


@pytest.fixture
def empty_file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A file with the schema and nothing else."""
    file = tmp_path / "post.db"
    db = connect(file, busy_timeout_ms=1000)
    migrate(db, file)
    yield db
    db.close()


@pytest.mark.parametrize("operation", sorted(_LED_BY))
def test_an_index_leads_to_what_is_wanted(empty_file: sqlite3.Connection, operation: str) -> None:
    """In the order of the list, so that a page costs the same wherever it starts."""
    plan = _plan(empty_file, operation)

    assert any(_LED_BY[operation] in step for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan


@pytest.mark.parametrize("operation", _BY_KEY)
def test_what_is_named_is_found_by_its_key(empty_file: sqlite3.Connection, operation: str) -> None:
    """Only the lists that were handed in are walked."""
    scans = [step for step in _plan(empty_file, operation) if re.match(r"SCAN (?!\()", step)]

    assert [step for step in scans if "VIRTUAL TABLE" not in step] == []


def _plan(db: sqlite3.Connection, operation: str) -> list[str]:
    statement = sql(operation)
    names = re.findall(r":([a-z_]+)", statement)
    return [
        row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", dict.fromkeys(names, "[]"))
    ]
