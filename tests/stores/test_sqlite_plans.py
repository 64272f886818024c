"""How SQLite finds rows: by whole keys, whatever the size of the backlog and without statistics."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from carteiro.stores.sqlite.opening import connect, migrate, sql

_QUEUE_STATEMENTS = (
    "accept_counts",
    "accept_keys",
    "accept_known",
    "accept_tags",
    "accept_tenants",
    "claim_alarms",
    "claim_due",
    "claim_due_or_lost",
    "claim_due_seats",
    "claim_heads",
    "claim_in_flight",
    "claim_load",
    "claim_presets",
    "claim_take",
    "declare",
    "drop_parked",
    "drop_ready",
    "expire_find",
    "extend",
    "hold_parked",
    "key_by_hash",
    "key_holder",
    "keys_list",
    "keys_live",
    "keys_revoke",
    "keys_used",
    "load_entries",
    "park_settled",
    "ready_parked",
    "release",
    "settle_retried",
    "settle_sent",
    "tenants_list",
    "unsettled",
)
# What people ask for and what is pruned or erased may look at every tenant, and at every kind of each, but no further.
_DESK_STATEMENTS = (
    "depths",
    "erase_counts",
    "erase_dead_letters",
    "erase_ended",
    "erase_events",
    "erase_find",
    "erase_keys",
    "erase_left",
    "erase_mails",
    "erase_messages",
    "erase_parked",
    "erase_ready",
    "erase_recipients",
    "erase_requests",
    "erase_requests_of_messages",
    "erase_rest",
    "erase_seats",
    "erase_tags",
    "erase_templates",
    "erase_waiting",
    "messages",
    "place",
    "prune_counts",
    "prune_keys",
    "prune_tags",
    "recipient_delete",
    "recipient_drop",
    "recipients_list",
    "recipients_list_by_email",
    "recipients_list_by_external_id",
    "recipients_named",
    "states_of_tenant",
    "tag_tenants",
    "unfinished",
    "walk_all",
    "walk_attempts",
    "walk_emails",
    "walk_external_id",
    "walk_recipient",
    "walk_sent",
    "walk_tag",
    "walk_tasks",
    "walk_to",
    "walk_unfinished",
    "walk_unlucky",
)
_PER_TENANT = {"tenants", "seats", "api_counts"}
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


@pytest.mark.parametrize("operation", _DESK_STATEMENTS)
def test_no_statement_of_the_desk_walks_more_than_the_tenants(
    empty_file: sqlite3.Connection, operation: str
) -> None:
    """Nobody's question may cost more the more messages there are."""
    tables = {row[0] for row in empty_file.execute("SELECT name FROM sqlite_master")}
    short = {"t": "tenants", "s": "seats"}
    scans = re.findall(
        r"SCAN (\w+)(?! USING INDEX \w+ \()", "\n".join(_plan(empty_file, operation))
    )
    walked = {short.get(each, each) for each in scans}

    assert walked & (tables | set("mrpgq")) <= _PER_TENANT


@pytest.mark.parametrize("operation", _DESK_STATEMENTS)
def test_no_list_is_sorted_anew(empty_file: sqlite3.Connection, operation: str) -> None:
    """An index has the order already; only what is short or counted has none."""
    sorts = [step for step in _plan(empty_file, operation) if "TEMP B-TREE" in step]

    assert not sorts or operation in {
        "walk_unfinished",
        "walk_attempts",
        "states_of_tenant",
        "depths",
    }


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
