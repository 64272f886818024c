"""The source of a move: a file that triggers close, read table by table.

Triggers hold in every process that has the file open, of any release, and cost nothing without a move.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from carteiro.errors import CannotMove, StoreMoved
from carteiro.policy.lifecycle import LONGEST_HOLD_MS
from carteiro.ports.ledger import QUEUE
from carteiro.ports.moving import Departure, InFlight, Place, Rows
from carteiro.stores.columns import moment
from carteiro.stores.sql.audit import Noted, rows_of
from carteiro.stores.sqlite.opening import connect, in_our_words, migrate
from carteiro.stores.sqlite.options import wall_clock_ms
from carteiro.stores.sqlite.rows import as_json, run

_MARK = "moved"
_CLOSING, _CLOSED, _FINISHED = "closing", "closed", "finished"
_BEFORE_TEXT, _BEFORE_NUMBER = "", -(2**63)
# The key of each table, and a value before all others.
_KEYS: Mapping[str, Mapping[str, str | int]] = {
    "tenants": {"id": _BEFORE_TEXT},
    "tiers": {"name": _BEFORE_TEXT},
    "sender_domains": {"domain": _BEFORE_TEXT},
    "access_keys": {"id": _BEFORE_TEXT},
    "audit": {"id": _BEFORE_TEXT},
    "recipient_records": {"id": _BEFORE_TEXT},
    "messages": {"no": _BEFORE_NUMBER},
    "entries": {"message_no": _BEFORE_NUMBER},
    "events": {"message_no": _BEFORE_NUMBER, "position": _BEFORE_NUMBER},
    "unfinished": {"expires_at": _BEFORE_NUMBER, "message_no": _BEFORE_NUMBER},
    "message_tags": {
        "tenant": _BEFORE_TEXT,
        "tag": _BEFORE_TEXT,
        "created_at": _BEFORE_NUMBER,
        "message_no": _BEFORE_NUMBER,
    },
    "dead_letters": {"message_id": _BEFORE_TEXT},
    "redrives": {"id": _BEFORE_TEXT},
    "redrive_items": {"redrive": _BEFORE_TEXT, "message_id": _BEFORE_TEXT},
    "idempotency_keys": {"tenant": _BEFORE_TEXT, "key": _BEFORE_TEXT},
    "api_counts": {"tenant": _BEFORE_TEXT, "window_ms": _BEFORE_NUMBER},
    "templates": {"tenant": _BEFORE_TEXT, "type": _BEFORE_TEXT, "version": _BEFORE_NUMBER},
    "suppressions": {"tenant": _BEFORE_TEXT, "key": _BEFORE_TEXT, "reason": _BEFORE_TEXT},
    "inbox": {"id": _BEFORE_NUMBER},
    "overrides": {"name": _BEFORE_TEXT},
    "rollups": {
        "span": _BEFORE_TEXT,
        "tenant": _BEFORE_TEXT,
        "template": _BEFORE_TEXT,
        "provider": _BEFORE_TEXT,
        "at": _BEFORE_NUMBER,
    },
    "rollup_notes": {"no": _BEFORE_NUMBER},
    "alerts": {"name": _BEFORE_TEXT, "subject": _BEFORE_TEXT},
    "silences": {"id": _BEFORE_TEXT},
    "notices": {"id": _BEFORE_TEXT, "channel": _BEFORE_TEXT},
    "failure_groups": {"id": _BEFORE_TEXT},
    "failure_counts": {"group_id": _BEFORE_TEXT, "at": _BEFORE_NUMBER, "tenant": _BEFORE_TEXT},
    "ring_clock": {"kind": _BEFORE_TEXT},
    "seats": {"kind": _BEFORE_TEXT, "tenant": _BEFORE_TEXT},
    "jobs": {"message_no": _BEFORE_NUMBER},
}
_MOST_ROWS = 5000
_MOST_LETTERS = 8_000_000  # a content may be megabytes: at most this many are in memory at once, and one row more


class SqliteSource:
    """See `carteiro.ports.moving.Source` for what it promises."""

    def __init__(self, db: sqlite3.Connection, path: Path, clock: Callable[[], int]) -> None:
        self.name = f"sqlite:///{path}"
        self._db = db
        self._path = path
        self._clock = clock

    def departure(self) -> Departure | None:
        """The move that the store is closed for, if any."""
        with in_our_words(self._path):
            mark = _mark(self._db)
        if mark is None:
            return None
        return Departure(mark["move"], mark["to"], mark["phase"] == _FINISHED)

    def begin(self, move: str, *, to: str) -> None:
        """Accept and claim nothing more; jobs in flight may still settle."""
        with self._transaction() as db:
            if run(db, "override_get", name=QUEUE).fetchone() is not None:
                text = (
                    f"the jobs of {self.name} are in a queue elsewhere: stop its processes, then run "
                    f"carteiro stats --store {self.name} without a queue, which brings them back"
                )
                raise CannotMove(text)
            if _mark(db) is not None:
                raise CannotMove(f"another carteiro move has just begun with {self.name}")
            self._become(db, _CLOSING, {"move": move, "to": to})

    def close(self) -> InFlight | None:
        """Refuse every change; if something is in flight, change nothing and return it."""
        with self._transaction() as db:
            mark = self._own_mark(db)
            if mark["phase"] != _CLOSING:
                return None
            asked = {"now": self._clock(), "longest": LONGEST_HOLD_MS}
            count, until = run(db, "move_in_flight", **asked).fetchone()
            if count:
                return InFlight(count, moment(until))
            self._become(db, _CLOSED, mark)
            return None

    def counts(self) -> Mapping[str, int]:
        """The number of rows to copy, by table."""
        with in_our_words(self._path):
            return dict(run(self._db, "move_counts").fetchall())

    def page(self, table: str, after: Place | None) -> Rows:
        """The next rows of a table, by its key; empty at the end."""
        keys = _KEYS[table]
        place = list(keys.values()) if after is None else after
        rows: list[Any] = []
        letters = 0
        with (
            in_our_words(self._path),
            closing(run(self._db, f"move_{table}", after=as_json(place))) as found,
        ):
            columns = [each[0] for each in found.description]
            for row in found:
                rows.append(row)
                letters += sum(len(each) for each in row if isinstance(each, str))
                if len(rows) >= _MOST_ROWS or letters >= _MOST_LETTERS:
                    break
        if rows:
            place = [rows[-1][columns.index(key)] for key in keys]
        return Rows(columns, rows, place)

    def finish(self) -> None:
        """Stay closed, and record that everything was moved."""
        with self._transaction() as db:
            self._become(db, _FINISHED, self._own_mark(db))

    def reopen(self) -> None:
        """Open again, with no trace of the move but an audit row."""
        with self._transaction() as db:
            mark = _mark(db)
            _unfence(db)
            before = {} if mark is None else {"to": mark["to"], "phase": mark["phase"]}
            undone = Noted("reopen", "store", self.name, before=before)
            run(db, "override_drop", name=_MARK)
            run(db, "audit_add", rows=as_json(rows_of(self._clock(), undone)))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with in_our_words(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _own_mark(self, db: sqlite3.Connection) -> dict[str, str]:
        mark = _mark(db)
        if mark is None:
            raise CannotMove(f"{self.name} was opened again during the move: start a new move")
        return mark

    def _become(self, db: sqlite3.Connection, phase: str, mark: Mapping[str, str]) -> None:
        _unfence(db)
        stored = orjson.dumps({**mark, "phase": phase}).decode()
        run(db, "override_set", name=_MARK, setting=stored)
        goes = "went" if phase == _FINISHED else "go"
        text = (
            f"{self._path} is closed: its messages {goes} to {mark['to']} (carteiro move). "
            "Set store to that address"
        )
        for [statement] in run(
            db, "move_begin" if phase == _CLOSING else "move_close", text=text
        ).fetchall():
            db.execute(statement)


@contextmanager
def open_source(
    path: Path, *, busy_timeout_ms: int = 5000, clock: Callable[[], int] = wall_clock_ms
) -> Iterator[SqliteSource]:
    """Open a file as the source of a move, with the schema of this release."""
    place = path.absolute()
    with closing(connect(place, busy_timeout_ms=busy_timeout_ms)) as db:
        migrate(db, place)
        yield SqliteSource(db, place, clock)


def left_for(db: sqlite3.Connection) -> str | None:
    """The target that the messages of a closed file move to; None: it is open. Works with any schema."""
    is_closed = run(db, "move_open").fetchone() is not None
    mark = _mark(db) if is_closed else None
    return None if mark is None else mark["to"]


def refuse_left(db: sqlite3.Connection) -> None:
    """Raise `StoreMoved` if the file is closed; writers get this error from the triggers."""
    target = left_for(db)
    if target is not None:
        raise StoreMoved(f"It is closed: its messages go to {target} (carteiro move)")


def _mark(db: sqlite3.Connection) -> dict[str, str] | None:
    row = run(db, "override_get", name=_MARK).fetchone()
    return None if row is None else orjson.loads(row[0])


def _unfence(db: sqlite3.Connection) -> None:
    for [statement] in run(db, "move_open").fetchall():
        db.execute(statement)
