"""The ledger half inside one transaction: the usual attempts by lists, all others by the rules.

Every function here runs in the writer's transaction: if killed anywhere, nothing is stored.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from carteiro import model
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, Change, Entry, Stamped
from carteiro.ports.ledger import LEASED, SENT, Closed
from carteiro.stores import columns
from carteiro.stores.sql.ledger import HERE, Asked, Told, closings, ends, starts
from carteiro.stores.sql.session import Session
from carteiro.stores.sqlite.database import SqliteSession
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rows import as_json, run, run_many
from carteiro.stores.sqlite.writer import Writer

_Rows: TypeAlias = list[tuple[object, ...]]

_FIRST_BEGUN = model.Begun(1)
_SENT = model.Settled(model.State.SENT)


class Held(NamedTuple):
    """An entry with its job."""

    id: model.MessageId
    message_no: int
    claim: model.ClaimId | None
    parked_until: int | None
    seat: int | None
    priority: int
    place: str | None  # of the job: ready, delayed or leased; None: it has none
    next_position: int | None  # of an event, if some are rows of their own
    timeline_length: int
    expires_at: int | None  # None: it is finished
    entry: Entry


class SqliteEntries:
    """See `carteiro.stores.sql.ledger.Entries`; nobody else changes an entry meanwhile."""

    def __init__(self, writer: Writer, options: SqliteOptions) -> None:
        self._writer = writer
        self._options = options

    async def load(
        self, session: Session, ids: Sequence[model.MessageId]
    ) -> dict[model.MessageId, Held]:
        """Return the entries of these ids; unknown ones are left out."""
        return load(_connection(session), ids)

    async def save(
        self, session: Session, changed: Sequence[tuple[Held, Change]], now: int
    ) -> tuple[int, bool]:
        """Store changes of entries; return their number, and True if there may be work now."""
        changes = Changes(_connection(session), now, has_queue=self._options.has_queue)
        for held, change in changed:
            changes.apply(held, change)
        return len(changed), changes.save()

    async def write(
        self, asked: Sequence[Asked], *, declares: bool = False
    ) -> tuple[list[Any], bool]:
        """Load, judge and save in one transaction; return the answers, and True if there may be work now."""
        return await self._writer.do(lambda db: self._by_rules(db, asked, declares=declares))

    async def declare(
        self, asked: Sequence[model.Start], told: Sequence[Told] | None = None
    ) -> list[Any]:
        """Declare attempts: the first ones of messages by lists, the others by the rules."""

        def write(db: sqlite3.Connection) -> list[Any]:
            now = self._options.clock()
            said = told or [HERE] * len(asked)
            usual = _first_attempts(db, asked, said, now)
            others = [start for start, row in zip(asked, usual, strict=True) if not row]
            _declare(
                db, [(start, row) for start, row in zip(asked, usual, strict=True) if row], now
            )
            by_rules = starts(others, _left(usual, said))
            answers, _ = self._by_rules(db, by_rules, declares=True)
            return _merged(_FIRST_BEGUN, usual, answers)

        return await self._writer.do(write)

    async def settle(
        self, asked: Sequence[model.End]
    ) -> tuple[list[model.Settled | model.Late], bool]:
        """Settle attempts: sent messages by lists, the others by the rules. True: there may be work now."""

        def write(db: sqlite3.Connection) -> tuple[list[Any], bool]:
            usual = _plainly_sent(db, asked)
            others = [end for end, row in zip(asked, usual, strict=True) if not row]
            sent = [(end, row) for end, row in zip(asked, usual, strict=True) if row]
            has_freed = _settle(db, sent, self._options.clock())
            answers, has_work = self._by_rules(db, ends(others))
            return _merged(_SENT, usual, answers), has_work or has_freed

        return await self._writer.do(write)

    async def close(self, asked: Sequence[model.End], told: Sequence[Told]) -> list[Closed | None]:
        """As `settle`, where a separate queue has the jobs."""

        def write(db: sqlite3.Connection) -> list[Any]:
            now = self._options.clock()
            usual = _surely_sent(db, asked, told, now)
            others = [end for end, row in zip(asked, usual, strict=True) if not row]
            sent = [(end, row) for end, row in zip(asked, usual, strict=True) if row]
            _store_sent(db, sent, now)
            answers, _ = self._by_rules(db, closings(others, _left(usual, told)))
            return _merged(SENT, usual, answers)

        return await self._writer.do(write)

    def _by_rules(
        self, db: sqlite3.Connection, asked: Sequence[Asked], *, declares: bool = False
    ) -> tuple[list[Any], bool]:
        """Load, judge and save; a message that is named twice is loaded again: the second finds what the first left."""
        if not asked:
            return [], False
        found = load(db, [each.id for each in asked])
        if len({each.id for each in asked}) < len(asked):
            each_alone = [self._by_rules(db, [each], declares=declares) for each in asked]
            has_work = any(has_work for _, has_work in each_alone)
            return [answer for [answer], _ in each_alone], has_work
        changes = Changes(db, self._options.clock(), has_queue=self._options.has_queue)
        answers = []
        for each in asked:
            held = found.get(each.id)
            answer, change, _ = each.judge(held, changes.now)
            answers.append(answer)
            if held is not None and change is not None:
                changes.apply(held, change)
                if declares and held.entry.held_until is not None:
                    changes.hold(held, held.entry.held_until)
        return answers, changes.save(dead_letter_ttl_ms=self._options.dead_letter_ttl_ms)


def _connection(session: Session) -> sqlite3.Connection:
    return cast("SqliteSession", session).connection


# --- the usual attempts, by lists


def _find(db: sqlite3.Connection, ids: Sequence[model.MessageId]) -> list[Any]:
    """The row of each message; None for all if one is named twice.

    0 number, 1 claim, 2 seat, 3 whether it declares, 4 due time, 5 expiry, 6 state (None: nothing happened yet),
    7 whether lists can write its timeline, 8 who holds its attempt, 9 until when.
    """
    if len(set(ids)) < len(ids):
        return [None] * len(ids)
    return run(db, "find_leased", ids=as_json(ids), most=columns.MOST_TIMELINE).fetchall()


def _first_attempts(
    db: sqlite3.Connection, asked: Sequence[model.Start], told: Sequence[Told], now: int
) -> list[Any]:
    """For each start its row, None unless its claim has the job, it is due and nothing has happened to it before."""
    found = _find(db, [start.lease.job for start in asked])
    return [
        row
        if row
        and (row[1] == start.lease.claim or (said == LEASED and row[0] is not None))
        and row[6] is None
        and row[4] <= now < row[5]
        and not start.open_attempt
        else None
        for start, said, row in zip(asked, told, found, strict=True)
    ]


def _declare(db: sqlite3.Connection, usual: Sequence[tuple[model.Start, Any]], now: int) -> None:
    holds = [now + start.hold // MILLISECOND for start, _ in usual]
    rows = [
        (row[0], start.lease.claim, until, start.provider, _first_timeline(start, now))
        for (start, row), until in zip(usual, holds, strict=True)
    ]
    run_many(db, "declare_first", rows)
    seats = [row[2] for _, row in usual]
    if not any(seats):  # a separate queue has the jobs
        return
    leases = [(row[2], seat, row[0]) for row, seat in zip(rows, seats, strict=True)]
    run_many(db, "hold_leased", leases)
    alarms = dict(sorted(zip(seats, holds, strict=True), reverse=True))  # the first of each
    run_many(db, "touch_seats", [(until, 0, seat) for seat, until in alarms.items()])


def _first_timeline(start: model.Start, now: int) -> str:
    told: _Rows = [
        (event.type, now - event.ago // MILLISECOND, event.metadata) for event in start.events
    ]
    told.append(("SENT_ATTEMPT", now, {"attempt": 1, "provider": start.provider}))
    return f"{orjson.dumps(told)[1:-1].decode()},"


def _plainly_sent(db: sqlite3.Connection, asked: Sequence[model.End]) -> list[Any]:
    """For each end its row, None unless its claim has the job and it is plainly sent: nothing else needs a rule."""
    found = _find(db, [end.lease.job for end in asked])
    return [
        row
        if row
        and row[1] == end.lease.claim
        and end.verdict.__class__ is model.Sent
        and not (end.events or end.in_doubt)
        and (not row[3] if row[6] is None else row[7] and (row[6] == "SENT_ATTEMPT" or not row[3]))
        else None
        for end, row in zip(asked, found, strict=True)
    ]


def _surely_sent(
    db: sqlite3.Connection, asked: Sequence[model.End], told: Sequence[Told], now: int
) -> list[Any]:
    """For each end of an unexpired lease its row, None unless plainly sent and only its claim can have the job."""
    found = _find(db, [end.lease.job for end in asked])
    return [
        row
        if row
        and said == LEASED
        and end.verdict.__class__ is model.Sent
        and not (end.events or end.in_doubt)
        and (
            row[0] is not None and not row[3]
            if row[6] is None
            else row[6] == "SENT_ATTEMPT"
            and row[7]
            and row[8] == end.lease.claim
            and now < row[9] <= now + LONGEST_HOLD_MS
        )
        else None
        for end, said, row in zip(asked, told, found, strict=True)
    ]


def _settle(db: sqlite3.Connection, usual: Sequence[tuple[Any, Any]], now: int) -> bool:
    """Store sent messages, and end their leases; True if a slot became free that a tenant waited for."""
    _store_sent(db, usual, now)
    run_many(db, "drop_leased", [(row[2], row[0]) for _, row in usual])
    seats = Counter([row[2] for _, row in usual])
    run_many(db, "touch_seats", [(columns.FAR, -jobs, seat) for seat, jobs in seats.items()])
    return bool(seats) and free_slots(db, seats, now)


def _store_sent(db: sqlite3.Connection, usual: Sequence[tuple[Any, Any]], now: int) -> None:
    rows = [
        (
            *(row[6], row[0], int(end.attempted), end.lease.claim, end.verdict.provider),
            *(end.verdict.provider_id, end.duration // MILLISECOND, now),
        )
        for end, row in usual
    ]
    run_many(db, "settle_first", [row[1:] for row in rows if row[0] is None])
    run_many(db, "settle_sent", [row[1:] for row in rows if row[0] is not None])
    run_many(db, "drop_unfinished", [(row[5], row[0]) for _, row in usual])


def _left(usual: Sequence[Any], told: Sequence[Told]) -> list[Told]:
    return [said for row, said in zip(usual, told, strict=True) if not row]


def _merged(usual_answer: object, usual: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    left = iter(others)
    return [usual_answer if row else next(left) for row in usual]


# --- all others, by the rules


class Changes:
    """Changes of one operation, collected so that each table is written once."""

    def __init__(self, db: sqlite3.Connection, now: int, *, has_queue: bool) -> None:
        self.db = db
        self.now = now
        self._has_queue = has_queue  # else a separate queue has the jobs, and others move them
        self._changed: list[tuple[Held, Sequence[Stamped]]] = []
        self._held: _Rows = []
        self._dropped: dict[str, _Rows] = {"ready": [], "delayed": [], "leased": []}
        self._put: dict[str, _Rows] = {"ready": [], "delayed": []}
        self._buried: list[tuple[str, str, str | None, int]] = []
        self._unburied: list[str] = []
        self._touched: dict[int, list[int]] = {}
        self._freed: set[int] = set()

    def apply(self, held: Held, change: Change) -> None:
        """Add the change of a rule."""
        entry = held.entry
        self._changed.append((held, change.events))
        if change.park_until is not None:
            self._park(held, entry, change.park_until)
        if change.drop_job:
            self._drop(held, entry)
        if change.buried is not None:
            reason, failure, failed = change.buried
            self._buried.append((entry.id, reason.value, columns.failure_text(failure), failed))
        if change.unburied:
            self._unburied.append(entry.id)

    def hold(self, held: Held, until: int) -> None:
        """Replace the lease by the hold of a declared attempt."""
        self._held.append((until, held.seat, held.message_no))
        self._touch(held, until)

    def _drop(self, held: Held, entry: Entry, *, jobs: int = -1) -> None:
        """Remove the job from the queue."""
        if held.place is None or held.seat is None:
            return
        keys: dict[str, tuple[object, ...]] = {
            "ready": (held.seat, held.priority, entry.due_at, held.id),
            "delayed": (held.message_no,),
            "leased": (held.seat, held.message_no),
        }
        self._dropped[held.place].append(keys[held.place])
        self._touch(held, columns.FAR, jobs=jobs)
        if held.claim is not None:
            self._freed.add(held.seat)

    def _park(self, held: Held, entry: Entry, until: int) -> None:
        self._drop(held, entry, jobs=0)
        if until > self.now:
            self._put["delayed"].append((held.message_no, held.seat, until, held.id, 0))
        else:
            self._put["ready"].append(
                (held.seat, held.priority, entry.due_at, held.id, held.message_no, 0)
            )
        self._touch(held, until)

    def _touch(self, held: Held, at: int, *, jobs: int = 0) -> None:
        if held.seat is not None:
            seat = self._touched.setdefault(held.seat, [columns.FAR, 0])
            seat[0] = min(seat[0], at)
            seat[1] += jobs

    def save(self, *, dead_letter_ttl_ms: int = 0) -> bool:
        """Write everything, one statement per table; True if a job may be claimed sooner than before."""
        db, now = self.db, self.now
        self._save_entries()
        if self._buried:
            run(db, "bury", rows=as_json(self._buried), now=now, ttl_ms=dead_letter_ttl_ms)
        if self._unburied:
            run(db, "unbury", ids=as_json(self._unburied))
        return self._has_queue and self._move_jobs()

    def _save_entries(self) -> None:
        entries: _Rows = []
        events: _Rows = []
        opened: _Rows = []
        closed: _Rows = []
        for held, told in self._changed:
            no, entry, timeline = held.message_no, held.entry, columns.timeline_text(told)
            if held.next_position or held.timeline_length >= columns.MOST_TIMELINE:
                timeline = ""
                events += [
                    (no, position, each.type, orjson.dumps(each.metadata).decode(), each.at)
                    for position, each in enumerate(told, held.next_position or 1)
                ]
            entries.append((no, timeline, *columns.entry_row(entry)))
            expires_at = entry.expires_at if entry.finished_at is None else None
            if held.expires_at != expires_at:
                closed += [(held.expires_at, no)] if held.expires_at is not None else []
                opened += [(expires_at, no)] if expires_at is not None else []
        run_many(self.db, "save_entries", entries)
        run_many(self.db, "write_events", events)
        run_many(self.db, "drop_unfinished", closed)
        run_many(self.db, "put_unfinished", opened)

    def _move_jobs(self) -> bool:
        for place, keys in self._dropped.items():
            run_many(self.db, f"drop_{place}", keys)
        for place, rows in self._put.items():
            run_many(self.db, f"put_{place}", rows)
        run_many(self.db, "hold_leased", self._held)
        touched = [(*alarm_and_jobs, seat) for seat, alarm_and_jobs in self._touched.items()]
        run_many(self.db, "touch_seats", touched)
        has_freed = bool(self._freed) and free_slots(self.db, self._freed, self.now)
        return has_freed or any(self._put.values())


def free_slots(db: sqlite3.Connection, seats: Iterable[int], now: int) -> bool:
    """Record a free slot of the tenants of these seats; True if one of them waited for it."""
    return run(db, "free_slots", seats=as_json(list(seats)), now=now).rowcount > 0


def load(db: sqlite3.Connection, ids: Sequence[model.MessageId]) -> dict[model.MessageId, Held]:
    """The entries of the ids, with their jobs."""
    found = {}
    for row in run(db, "load_entries", ids=as_json(ids)):
        *job, place, position, length = row[:8]
        entry = columns.entry_of(row[8:])
        expires_at = entry.expires_at if entry.finished_at is None else None
        has_job = expires_at is not None or place == "leased"
        place = place if has_job else None
        held = (entry.id, *job, place, position, length, expires_at, entry)
        found[entry.id] = Held._make(held)
    return found
