"""Query plans on SQLite: every statement, with 100,000 rows in every table that grows.

A new statement is checked as soon as its file is there. Its first lines name the items of its lists.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from carteiro.model import EMAIL, AuditFilter, MessageFilter, State, TenantId
from carteiro.stores.sql.audit import finding
from carteiro.stores.sql.lists import find_messages
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.opening import split, sql
from carteiro.stores.sqlite.rows import run
from support.crowded import FAR, GROWING, NOW, ROWS, crowded, operations, parameters, row

# Looking at each of 100,000 rows takes 300,000 steps and more; finding 1,000 by their keys, fewer.
MOST_STEPS = 200_000

_AFTER_LIMIT = "reads the first rows in the order of a key, and stops"
_ONCE_A_MOVE = "a move reads everything once"
_ONCE_A_TENANT = "the last step of erasing a tenant, when its messages are gone"
_CAPPED = "counts dead letters, whose number is limited by a setting"
_COUNTS = "counts the ledger, for people; no gauge asks"
_GROUPS = "ranks failure groups, whose number is limited"
_REBUILDS = "makes the queue anew from the ledger"
_SHORT = "asked only when a count that stops early says that these are few"
EXCEPTIONS = {
    "dead_letters_group": _CAPPED,
    "dead_letters_group_of_tenant": _CAPPED,
    "dead_letters_new": _CAPPED,
    "dead_letters_shares": _CAPPED,
    "dead_letters_sizes": _CAPPED,
    "erase_tenant": _ONCE_A_TENANT,
    "failure_groups_trim": _GROUPS,
    "move_audit": _ONCE_A_MOVE,
    "move_counts": _ONCE_A_MOVE,
    "move_dead_letters": _ONCE_A_MOVE,
    "move_entries": _ONCE_A_MOVE,
    "move_events": _ONCE_A_MOVE,
    "move_idempotency_keys": _ONCE_A_MOVE,
    "move_inbox": _ONCE_A_MOVE,
    "move_jobs": _ONCE_A_MOVE,
    "move_message_tags": _ONCE_A_MOVE,
    "move_messages": _ONCE_A_MOVE,
    "move_recipient_records": _ONCE_A_MOVE,
    "move_suppressions": _ONCE_A_MOVE,
    "move_unfinished": _ONCE_A_MOVE,
    "restore_jobs": _REBUILDS,
    "states": _COUNTS,
    "states_of_tenant": _COUNTS,
    "walk_unfinished": _SHORT,
    "walk_unfinished_messages": _SHORT,
}
STOP_EARLY = {
    "examine_newest": _AFTER_LIMIT,
    "inbox_list": _AFTER_LIMIT,
    "inbox_prune": _AFTER_LIMIT,
    "unfinished_messages": _AFTER_LIMIT,
}


@pytest.fixture(scope="module")
def full() -> Iterator[sqlite3.Connection]:
    """The database with 100,000 rows."""
    db = crowded()
    yield db
    db.close()


@pytest.fixture(scope="module")
def quiet() -> Iterator[sqlite3.Connection]:
    """The same with a hundredth of the other tenants' rows."""
    db = crowded(ROWS // 100)
    yield db
    db.close()


def _steps(db: sqlite3.Connection, ask: Callable[[], object], *, each: int = 100) -> int:
    """The steps of SQLite's virtual machine, up to a little above the limit; all writes are undone."""
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += each
        return steps > MOST_STEPS

    db.execute("BEGIN")
    db.set_progress_handler(count, each)
    try:
        ask()
    except sqlite3.IntegrityError:  # it adds an existing row: adding needs no plan
        pass
    except sqlite3.OperationalError:
        if steps <= MOST_STEPS:
            raise
    finally:
        db.set_progress_handler(None, 0)
        if db.in_transaction:
            db.execute("ROLLBACK")
    return steps


def _asked(operation: str) -> dict[str, object] | list[object]:
    if one := row(sql(operation)):
        return one
    asked = parameters(sql(operation))
    if operation.startswith("walk_"):  # along the messages of one tenant
        asked |= {
            name: json.dumps(json.loads(each)[:1])
            for name, each in asked.items()
            if isinstance(each, str) and each.startswith("[")
        }
    return asked


def _most_steps(db: sqlite3.Connection, operation: str) -> int:
    """The steps of the longest of the statements under one name."""
    asked = _asked(operation)
    return max(
        _steps(db, lambda each=each: db.execute(each, asked).fetchall())  # type: ignore[misc]
        for each in split(sql(operation))
    )


def _scanned(db: sqlite3.Connection, operation: str) -> set[str]:
    """The tables that a statement, or one of several under its name, scans sequentially, by its plan."""
    scanned = set()
    for statement in split(sql(operation)):
        names = {alias: table for table, alias in re.findall(r"(\w+) AS (\w+)", statement)}
        plan = db.execute(f"EXPLAIN QUERY PLAN {statement}", _asked(operation)).fetchall()
        walked = re.findall(r"^SCAN (\w+)", "\n".join(row[3] for row in plan), re.MULTILINE)
        scanned |= {names.get(each, each) for each in walked}
    return scanned


@pytest.mark.parametrize("operation", [each for each in operations() if each not in EXCEPTIONS])
def test_statement_never_scans_a_growing_table(full: sqlite3.Connection, operation: str) -> None:
    """Neither by its plan nor in the steps that it takes with a list of 1,000: no scan, no nested loop."""
    scanned = _scanned(full, operation) & GROWING
    steps = _most_steps(full, operation)

    assert not scanned or operation in STOP_EARLY
    assert steps <= MOST_STEPS


@pytest.mark.parametrize("operation", sorted(EXCEPTIONS | STOP_EARLY))
def test_every_exception_is_needed(full: sqlite3.Connection, operation: str) -> None:
    """The list names existing statements that need it."""
    scanned = _scanned(full, operation) & GROWING
    steps = _most_steps(full, operation)

    assert scanned or steps > MOST_STEPS


# --- one tenant's list costs nothing for the rows of others ------------------------------------

TINY = TenantId("tiny")
NAMES = {"to": "ana@example.com", "external_id": "name-1", "provider_id": "name-1"}
FILTERS: list[dict[str, Any]] = [
    {},
    {"kind": EMAIL},
    *({name: text} for name, text in NAMES.items()),
    *({name: text, "state": State.CANCELLED} for name, text in NAMES.items()),
    {"recipient_external_id": "name-1"},
    {"tag": "tag-1"},
    *({"state": state} for state in State),
]
LISTS: dict[str, dict[str, object]] = {
    "dead_letters_find_by_tenant": {},
    "dead_letters_group_of_tenant": {"by": "code"},
    "events": {"id": "tiny-2"},
    "inbox_list_of_tenant": {},
    "recipients_list": {"id": ""},
    "recipients_list_by_email": {"id": "", "email": "ana@example.com"},
    "recipients_list_by_external_id": {"id": ""},
    "suppressions_list": {},
    "suppressions_list_of_key": {"key": "key-tiny-2"},
}


@pytest.mark.parametrize("fields", FILTERS, ids=str)
@pytest.mark.parametrize("has_queue", [True, False], ids=["queue", "ledger"])
def test_list_of_messages_costs_the_same_with_any_rows_of_others(
    full: sqlite3.Connection, quiet: sqlite3.Connection, fields: dict[str, Any], *, has_queue: bool
) -> None:
    """Every page, with a cursor: no tenant can measure the volume or the recipients of others."""
    wanted = MessageFilter(tenant=TINY, **fields)

    def pages(db: sqlite3.Connection) -> list[object]:
        listed: list[object] = []
        cursor = None
        while True:
            page = finished(
                find_messages(
                    SqliteSession(db), wanted, cursor=cursor, limit=1, has_queue=has_queue
                )
            )
            cursor = page.next
            listed.append(([row.id for row in page.rows], cursor))
            if cursor is None:
                return listed

    assert pages(full) == pages(quiet)
    assert _steps(full, lambda: pages(full), each=1) == _steps(quiet, lambda: pages(quiet), each=1)


@pytest.mark.parametrize("operation", sorted(LISTS))
def test_other_lists_cost_the_same_with_any_rows_of_others(
    full: sqlite3.Connection, quiet: sqlite3.Connection, operation: str
) -> None:
    """Recipients, suppressions, dead letters, events and the inbox, as messages."""
    known = {"now": NOW - 1, "at": FAR, "before_at": FAR, "place": "z", "limit": 100}
    asked = parameters(sql(operation)) | {"tenant": TINY, "code": None} | known | LISTS[operation]

    def rows(db: sqlite3.Connection) -> list[object]:
        return run(db, operation, **asked).fetchall()

    assert rows(full)
    assert _steps(full, lambda: rows(full), each=1) == _steps(quiet, lambda: rows(quiet), each=1)


@pytest.mark.parametrize(
    "names", [{}, {"object": "big"}, {"who": "ana"}, {"kind": "none"}], ids=str
)
def test_audit_rows_of_a_tenant_cost_the_same_with_any_rows_of_others(
    full: sqlite3.Connection, quiet: sqlite3.Connection, names: dict[str, Any]
) -> None:
    """With every filter, also one that fits only the rows of others."""
    wanted = AuditFilter(tenant=TINY, **names)
    asked = asdict(wanted) | {"since": 0, "at": FAR, "id": "", "limit": 100}
    del asked["is_own"]

    def rows(db: sqlite3.Connection) -> list[object]:
        return run(db, finding(wanted), **asked).fetchall()

    assert bool(rows(full)) is not bool(names)
    assert _steps(full, lambda: rows(full), each=1) == _steps(quiet, lambda: rows(quiet), each=1)
