"""Where the crash suite keeps its messages: a folder, a store, and the words to ask that store with."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

_LIFE = "id, state, declares, delivery, attempts, in_doubt, round, held_until IS NOT NULL, kind, content"


@dataclass(frozen=True)
class Words:
    """How a kind of store is asked, with SQL of its own."""

    ledger: str  # a row per message, with what became of it
    entries: str  # the table where that can be changed
    entry_no: str
    event_of: str  # the column that an event has of its message, and what it is there
    message_of_event: str
    ranked_by: str  # the columns that ready jobs lie in order of
    a_rank: str
    events: str
    counted: str  # seats that count jobs; there are none left
    damage: str  # whatever is wrong with the store itself
    clocks_differ_ms: int = 0  # between the time of events and that of deliveries

    @property
    def lives(self) -> str:
        """All messages, oldest first."""
        return f"SELECT {_LIFE} FROM {self.ledger} JOIN contents ON message_no = no ORDER BY no"


SQLITE = Words(
    ledger="messages",
    entries="messages",
    entry_no="no",
    event_of="message_id",
    message_of_event="id",
    ranked_by="priority, due_at",
    a_rank="0, 0",
    events="SELECT message_id, type, created_at FROM events ORDER BY id",
    counted="SELECT kind, tenant, jobs FROM seats WHERE jobs <> 0",
    damage="SELECT * FROM pragma_integrity_check(1) WHERE integrity_check <> 'ok'",
)
POSTGRES = Words(
    ledger="ledger",
    entries="entries",
    entry_no="message_no",
    event_of="message_no",
    message_of_event="no",
    ranked_by="rank",
    a_rank="0",
    events=(
        "SELECT m.id, e.type, e.created_at FROM events AS e JOIN messages AS m ON m.no = e.message_no"
        " ORDER BY e.id"
    ),
    counted=(
        "SELECT kind, tenant, sum(jobs) FROM ("
        "SELECT kind, tenant, jobs FROM seats"
        " UNION ALL SELECT kind, tenant, jobs FROM unseen_notes() WHERE kind <> ''"
        ") AS told GROUP BY kind, tenant HAVING sum(jobs) <> 0"
    ),
    damage=(
        "SELECT m.id, e.message_no, c.message_no FROM messages AS m"
        " FULL JOIN entries AS e ON e.message_no = m.no FULL JOIN contents AS c ON c.message_no = m.no"
        " WHERE m.no IS NULL OR e.message_no IS NULL OR c.message_no IS NULL"
    ),
    clocks_differ_ms=20,  # events have the time that a process takes for the server's
)


@dataclass(frozen=True)
class Place:
    """A store and the folder beside it; as plain text, so that it can be told to a child."""

    store: str
    folder: str

    @property
    def marks(self) -> Path:
        """Where tasks leave their marks, a line each: the mark and when (milliseconds)."""
        return Path(self.folder) / "post.marks"

    @property
    def log(self) -> Path:
        """What the processes that work here log."""
        return Path(self.folder) / "post.log"

    @cached_property
    def words(self) -> Words:
        """How the store is asked."""
        return SQLITE if self.store.startswith("sqlite") else POSTGRES

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """What the store answers."""
        with closing(self._connection()) as db:
            found: Sequence[tuple[Any, ...]] = db.execute(query).fetchall()
            return found

    def change(self, statement: str) -> None:
        """Change what is stored behind everybody's back."""
        with closing(self._connection()) as db, db:
            db.execute(statement)

    def _connection(self) -> Any:
        if self.words is SQLITE:
            return sqlite3.connect(self.store.removeprefix("sqlite:///"))
        return psycopg.connect(self.store, options="-c search_path=carteiro")


def a_file(folder: Path) -> Place:
    """A file in this folder."""
    return Place(f"sqlite:///{folder / 'post.db'}", str(folder))
