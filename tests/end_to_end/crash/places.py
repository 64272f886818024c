"""The stores of the crash suite: a folder, a store, and the SQL to query it.

There may be a separate queue: then the store is only the ledger, and the jobs are in Redis.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carteiro.model import FINISHED, MessageId

if TYPE_CHECKING:
    from redis import Redis

PREFIX = "{email:send:dlq}"  # of all keys of the queue
_FINISHED = ", ".join(f"'{state}'" for state in sorted(FINISHED))
_LIFE = "id, state, declares, delivery, attempts, in_doubt, round, held_until IS NOT NULL, kind, content"


@dataclass(frozen=True)
class Words:
    """The SQL of a kind of store."""

    ledger: str  # a row per message, with its result
    entries: str  # the table where that can be changed
    with_content: str  # the ledger, with contents
    entry_no: str
    a_step_less: str  # a change that removes a step of every timeline
    a_second_end: str  # a second end, and a job too many; FROM follows
    a_job: str
    jobs: Mapping[str, str]  # by table
    leased: str
    events: str
    counted: str  # seats that count jobs; there are none left
    damage: str  # any damage of the store itself
    clocks_differ_ms: int = 0  # between the time of events and that of deliveries

    @property
    def lives(self) -> str:
        """All messages, oldest first."""
        return f"SELECT {_LIFE} FROM {self.with_content} ORDER BY no"


SQLITE = Words(
    ledger="ledger",
    with_content="ledger JOIN contents ON message_no = no",
    entries="entries",
    entry_no="message_no",
    a_step_less="UPDATE entries SET timeline = replace(timeline, 'SENT_ATTEMPT', 'OPENED')",
    a_second_end=(
        "INSERT INTO events (message_no, position, type, metadata, created_at)"
        " SELECT no, 1, 'SENT', '{}', 1"
    ),
    a_job="INSERT INTO ready (seat, priority, due_at, id, message_no) SELECT 1, 0, 0, id, no",
    jobs={
        "ready": "SELECT id, seat, claims FROM ready",
        "delayed": "SELECT id, seat, claims, until FROM delayed",
        "leased": "SELECT message_no, seat, claims, until, claim FROM leased",
    },
    leased="SELECT count(*) FROM leased",
    events="SELECT message_id, type, created_at FROM timelines ORDER BY id",
    counted="SELECT kind, tenant, jobs FROM seats WHERE jobs <> 0",
    damage="SELECT * FROM pragma_integrity_check(1) WHERE integrity_check <> 'ok'",
)
POSTGRES = Words(
    ledger="ledger",
    with_content="ledger",
    entries="entries",
    entry_no="message_no",
    a_step_less="UPDATE entries SET timeline = replace(timeline, 'SENT_ATTEMPT', 'OPENED')",
    a_second_end=(
        "INSERT INTO events (message_no, position, type, metadata, created_at)"
        " SELECT no, 1, 'SENT', '{}', 1"
    ),
    a_job="INSERT INTO ready (tenant, kind, id, message_no, rank) SELECT tenant, kind, id, no, 0",
    jobs={
        "ready": "SELECT id, kind, claims FROM ready",
        "delayed": "SELECT id, kind, claims, parked_until FROM delayed",
        "leased": "SELECT numbers, kind, claims, parked_until, claim_id FROM leased",
    },
    leased="SELECT coalesce(sum(cardinality(numbers)), 0) FROM leased",
    events="SELECT message_id, type, created_at FROM timelines ORDER BY id",
    counted="SELECT kind, tenant, jobs FROM seats_and_notes WHERE jobs <> 0",
    damage=(
        "SELECT m.id, e.message_no, m.content, u.message_no FROM ledger AS m"
        " FULL JOIN entries AS e ON e.message_no = m.no"
        " FULL JOIN unfinished AS u ON u.message_no = m.no AND u.expires_at = m.expires_at"
        " WHERE m.no IS NULL OR m.content IS NULL"
        " OR (m.finished_at IS NULL) <> (u.message_no IS NOT NULL)"
    ),
    # Events have the server's time as a process estimates it, deliveries the server's own:
    # two clocks. A process reads the server's within half of `_PROMPT_MS`, and uses it as
    # long as a later reading is within `_PROMPT_MS` (`Database._read_clock`): 10 + 5 ms, and
    # the rounding.
    clocks_differ_ms=20,
)


@dataclass(frozen=True)
class Place:
    """A store and its folder; as plain text, for a child."""

    store: str
    folder: str
    queue: str = ""  # the queue, if it is not in the store
    ses: str = ""  # the address of SES, if it delivers instead of the sandbox
    resend: str = ""  # the address of the twin of Resend, if it delivers instead of the sandbox

    @property
    def marks(self) -> Path:
        """The file with the marks of tasks, a line each: the mark and its time (milliseconds)."""
        return Path(self.folder) / "post.marks"

    @property
    def ses_folder(self) -> Path:
        """The folder of SES: its accepted mails, and the secret of its account."""
        return Path(self.folder) / "ses"

    @property
    def log(self) -> Path:
        """The log of the worker processes."""
        return Path(self.folder) / "post.log"

    @cached_property
    def words(self) -> Words:
        """The SQL of the store."""
        return SQLITE if self.store.startswith("sqlite") else POSTGRES

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        """The result of a query."""
        if self.words is SQLITE:
            with closing(sqlite3.connect(self._file)) as db:
                return db.execute(query).fetchall()
        found: Sequence[tuple[Any, ...]] = _answered(self.store, query).fetchall()
        return found

    def change(self, statement: str) -> None:
        """Change the stored data directly."""
        if self.words is SQLITE:
            with closing(sqlite3.connect(self._file)) as db, db:
                db.execute(statement)
        else:
            _answered(self.store, statement)

    def waiting(self) -> Sequence[Any]:
        """Some of the unfinished work: jobs, messages that should have one, and redrives.

        A job that moves while the tables are read one by one is in none of them: its message is unfinished.
        """
        return (
            self.unfinished(5)
            or self.jobs()[:5]
            or self.rows("SELECT id FROM redrives WHERE state = 'running'")
        )

    def unfinished(self, most: int = 1_000_000) -> list[MessageId]:
        """Messages that have not ended."""
        where = f"state NOT IN ({_FINISHED}) LIMIT {most}"
        return [row[0] for row in self.rows(f"SELECT id FROM {self.words.ledger} WHERE {where}")]

    def jobs(self) -> Sequence[Any]:
        """All jobs, with their data."""
        if not self.queue:
            return [
                (table, *row)
                for table, query in self.words.jobs.items()
                for row in self.rows(query)
            ]
        with self.redis() as client:
            return [("queued", job) for job in client.hkeys(f"{PREFIX}:jobs")]

    def leased(self) -> int:
        """Number of jobs that a worker has, or had when it died."""
        if self.queue:
            with self.redis() as client:
                return int(client.hlen(f"{PREFIX}:leases"))
        [(count,)] = self.rows(self.words.leased)
        return int(count)

    def places_of_jobs(self) -> Sequence[Any]:
        """The keys of the separate queue that hold jobs."""
        if not self.queue:
            return []
        with self.redis() as client:
            lists = ("ready:*", "delayed:*", "leased:*", "leases", "groups", "left", "held", "ends")
            return [key for each in lists for key in client.scan_iter(f"{PREFIX}:{each}")]

    def lose_queue(self) -> None:
        """Delete everything from the separate queue."""
        with self.redis() as client:
            client.flushdb()

    def redis(self) -> "Redis":
        """The separate queue."""
        from redis import Redis  # noqa: PLC0415 - who has no queue need not wait for it

        return Redis.from_url(self.queue, decode_responses=True)

    @property
    def _file(self) -> str:
        return self.store.removeprefix("sqlite:///")


_kept: dict[str, Any] = {}  # the newest connection to PostgreSQL, which is asked all the time


def _answered(url: str, statement: str) -> Any:
    """The answer to a statement, by a connection that is kept until its server, its database or somebody ends it."""
    import psycopg  # noqa: PLC0415 - who keeps a file need not wait for it

    if url in _kept:
        with suppress(psycopg.OperationalError):
            return _kept[url].execute(statement)
    for each in _kept.values():
        each.close()
    _kept.clear()
    options = "-c search_path=carteiro"
    _kept[url] = psycopg.connect(url, options=options, autocommit=True)
    return _kept[url].execute(statement)
