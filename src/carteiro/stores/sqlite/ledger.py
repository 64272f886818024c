"""The ledger half inside one transaction: the usual attempts by lists, all others by the rules.

Every function here runs in the writer's transaction: if killed anywhere, nothing is stored.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from carteiro import model
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, Change, Entry, Stamped
from carteiro.policy.rollups import Was, changed, was
from carteiro.ports.ledger import LEASED, SENT, Closed
from carteiro.stores import columns
from carteiro.stores.sql.ledger import HERE, Asked, Told, closings, ends, left_of, merged, starts
from carteiro.stores.sql.session import Session
from carteiro.stores.sqlite.database import SqliteSession
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.places import (
    CLAIM,
    DECLARES,
    DUE_AT,
    EXPIRES_AT,
    HAS_ROOM,
    HELD_UNTIL,
    HOLDER,
    NO,
    SEAT,
    STATE,
    PlacedClaim,
    Places,
    Row,
    ranges,
    stretches,
)
from carteiro.stores.sqlite.rollups import Sent, note_changed, note_sent
from carteiro.stores.sqlite.rows import as_json, insert_many, run, run_many
from carteiro.stores.sqlite.writer import Writer

_Rows: TypeAlias = list[tuple[object, ...]]
_Found: TypeAlias = list[Row | None]  # of each item of a list; None: it is not usual

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
    was: Was


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
            usual = _known_first(asked, now) if told is None else []
            if told is not None or not _as_known(
                db, lambda: _declare(db, asked, usual, now) or None
            ):
                usual = _first_attempts(db, asked, said, now)
                _declare(db, asked, usual, now, _places(usual))
            by_rules = starts(left_of(asked, usual), left_of(said, usual))
            answers, _ = self._by_rules(db, by_rules, declares=True)
            return merged(_FIRST_BEGUN, usual, answers)

        return await self._writer.do(write)

    async def settle(
        self, asked: Sequence[model.End]
    ) -> tuple[list[model.Settled | model.Late], bool]:
        """Settle attempts: sent messages by lists, the others by the rules. True: there may be work now."""

        def write(db: sqlite3.Connection) -> tuple[list[Any], bool]:
            now = self._options.clock()
            usual = _known_sent(asked)
            has_freed = _as_known(db, lambda: _settle(db, asked, usual, now))
            if has_freed is None:
                usual = _plainly_sent(db, asked)
                has_freed = _settle(db, asked, usual, now, _places(usual))
            answers, has_work = self._by_rules(db, ends(left_of(asked, usual)))
            return merged(_SENT, usual, answers), has_work or bool(has_freed)

        return await self._writer.do(write)

    async def close(self, asked: Sequence[model.End], told: Sequence[Told]) -> list[Closed | None]:
        """As `settle`, where a separate queue has the jobs."""

        def write(db: sqlite3.Connection) -> list[Any]:
            now = self._options.clock()
            usual = _surely_sent(db, asked, told, now)
            _store_sent(db, asked, usual, now)
            by_rules = closings(left_of(asked, usual), left_of(told, usual))
            answers, _ = self._by_rules(db, by_rules)
            return merged(SENT, usual, answers)

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


def _as_known(db: sqlite3.Connection, write: Callable[[], bool | None]) -> bool | None:
    """Write what claims knew to be usual; None, and nothing is written, if one of the jobs has changed since."""
    db.execute("SAVEPOINT known")
    answer = write()
    if answer is None:
        db.execute("ROLLBACK TO known")
    db.execute("RELEASE known")
    return answer


def _find(db: sqlite3.Connection, ids: Sequence[model.MessageId]) -> list[Any]:
    """The row of each message (see `places`); None for all if one is named twice."""
    if len(set(ids)) < len(ids):
        return [None] * len(ids)
    return run(db, "find_leased", ids=as_json(ids), most=columns.MOST_TIMELINE).fetchall()


def _known_first(asked: Sequence[Any], now: int) -> _Found:
    """For each start the row that its claim knew, None unless it is due and nothing had happened to it before."""
    return [
        row
        if (claim := start.lease.claim).__class__ is PlacedClaim
        and (row := claim.places.rows.get(start.lease.job)) is not None
        and row[STATE] is None
        and row[DUE_AT] <= now < row[EXPIRES_AT]
        and not start.open_attempt
        else None
        for start in asked
    ]


def _first_attempts(
    db: sqlite3.Connection, asked: Sequence[model.Start], told: Sequence[Told], now: int
) -> _Found:
    """For each start its row, None unless its claim has the job, it is due and nothing has happened to it before."""
    found = _find(db, [start.lease.job for start in asked])
    return [
        row
        if row
        and (row[CLAIM] == start.lease.claim or (said == LEASED and row[NO] is not None))
        and row[STATE] is None
        and row[DUE_AT] <= now < row[EXPIRES_AT]
        and not start.open_attempt
        else None
        for start, said, row in zip(asked, told, found, strict=True)
    ]


def _declare(
    db: sqlite3.Connection,
    asked: Sequence[model.Start],
    rows: _Found,
    now: int,
    places: Places | None = None,
) -> bool:
    """Store first attempts, and let their holds replace the leases; False if one of them is not as its row says."""
    usual = [
        (start, row, now + start.hold // MILLISECOND)
        for start, row in zip(asked, rows, strict=True)
        if row
    ]
    claims = {each: str(each) for each in {start.lease.claim for start in asked}}
    timelines: dict[Any, str] = {}  # most of a list share their events
    first = [
        (
            *row[:DECLARES],
            *(claims[start.lease.claim], until, start.provider),
            timelines[shared]
            if (shared := (start.provider, *map(id, start.events))) in timelines
            else timelines.setdefault(shared, _first_timeline(start, now)),
        )
        for start, row, until in usual
    ]
    stored = insert_many(db, "declare_first", first)
    if places is not None and not any(places.seats.values()):  # a separate queue has the jobs
        return stored == len(first)
    held = 0
    for until in {until for _, _, until in usual}:
        some = [each[:2] for each in usual if each[2] == until]
        for claim, numbers in _numbers(*zip(*some, strict=True)).items():
            leases = stretches(claim, numbers, places or claim.places)
            held += run_many(db, "hold_leased_stretch", [(*each, until) for each in leases])
            run_many(db, "touch_seats", [(until, 0, seat) for seat in {each[0] for each in leases}])
    return stored == held == len(first)


def _first_timeline(start: model.Start, now: int) -> str:
    told: _Rows = [
        (event.type, now - event.ago // MILLISECOND, event.metadata) for event in start.events
    ]
    told.append(("SENT_ATTEMPT", now, {"attempt": 1, "provider": start.provider}))
    return f"{orjson.dumps(told)[1:-1].decode()},"


def _known_sent(asked: Sequence[Any]) -> _Found:
    """For each end the row that its claim knew, None unless it is plainly sent: nothing else needs a rule."""
    return [
        claim.places.rows.get(end.lease.job)
        if (claim := end.lease.claim).__class__ is PlacedClaim
        and end.verdict.__class__ is model.Sent
        and not (end.events or end.in_doubt)
        else None
        for end in asked
    ]


def _plainly_sent(db: sqlite3.Connection, asked: Sequence[model.End]) -> _Found:
    """For each end its row, None unless its claim has the job and it is plainly sent."""
    found = _find(db, [end.lease.job for end in asked])
    return [
        row
        if row
        and row[CLAIM] == end.lease.claim
        and end.verdict.__class__ is model.Sent
        and not (end.events or end.in_doubt)
        and (
            not row[DECLARES]
            if row[STATE] is None
            else row[HAS_ROOM] and (row[STATE] == "SENT_ATTEMPT" or not row[DECLARES])
        )
        else None
        for end, row in zip(asked, found, strict=True)
    ]


def _surely_sent(
    db: sqlite3.Connection, asked: Sequence[model.End], told: Sequence[Told], now: int
) -> _Found:
    """For each end of an unexpired lease its row, None unless plainly sent and only its claim can have the job."""
    found = _find(db, [end.lease.job for end in asked])
    return [
        row
        if row
        and said == LEASED
        and end.verdict.__class__ is model.Sent
        and not (end.events or end.in_doubt)
        and (
            row[NO] is not None and not row[DECLARES]
            if row[STATE] is None
            else row[STATE] == "SENT_ATTEMPT"
            and row[HAS_ROOM]
            and row[HOLDER] == end.lease.claim
            and now < row[HELD_UNTIL] <= now + LONGEST_HOLD_MS
        )
        else None
        for end, said, row in zip(asked, told, found, strict=True)
    ]


def _places(rows: _Found) -> Places:
    """The seats of jobs that were looked up."""
    seats = {row[NO]: row[SEAT] for row in rows if row}
    return Places({}, seats, dict.fromkeys(seats))


def _numbers(asked: Sequence[Any], rows: _Found) -> Mapping[Any, list[int]]:
    """The numbers of the usual items, by claim."""
    claims = {each.lease.claim for each, row in zip(asked, rows, strict=True) if row}
    if len(claims) == 1:  # without a call for each
        return {each: [row[NO] for row in rows if row] for each in claims}
    numbers = defaultdict(list)
    for each, row in zip(asked, rows, strict=True):
        if row:
            numbers[each.lease.claim].append(row[NO])
    return numbers


def _settle(
    db: sqlite3.Connection,
    asked: Sequence[model.End],
    rows: _Found,
    now: int,
    places: Places | None = None,
) -> bool | None:
    """Store sent messages, and end their leases; None if one of them is not as its row says.

    True: a slot became free that a tenant waited for.
    """
    ended = wanted = 0
    seats: Counter[int] = Counter()
    for claim, numbers in _numbers(asked, rows).items():
        of = places or claim.places
        ended += run_many(db, "drop_leased_stretch", stretches(claim, numbers, of))
        seats.update([of.seats[no] for no in numbers])
        wanted += len(numbers)
    if ended != wanted or not _store_sent(db, asked, rows, now):
        return None
    run_many(db, "touch_seats", [(columns.FAR, -jobs, seat) for seat, jobs in seats.items()])
    return bool(seats) and free_slots(db, seats, now)


def _store_sent(db: sqlite3.Connection, asked: Sequence[Any], rows: _Found, now: int) -> bool:
    claims = {
        each: str(each) for each in {end.lease.claim for end in asked}
    }  # SQLite takes a subclass slowly
    usual: list[tuple[Row, Sent]] = [
        (
            row,
            (
                1 if end.attempted else 0,
                claims[end.lease.claim],
                (verdict := end.verdict).provider,
                verdict.provider_id,
                end.duration // MILLISECOND,
            ),
        )
        for end, row in zip(asked, rows, strict=True)
        if row
    ]
    timelines: dict[Any, str] = {}  # tasks have no id at their provider: most of a list look alike
    first: _Rows = [
        (
            *row[:DECLARES],
            *sent,
            now,
            timelines[sent]
            if sent in timelines
            else timelines.setdefault(sent, _sent_event(sent, now)),
        )
        for row, sent in usual
        if row[STATE] is None and not row[DECLARES]
    ]
    later: _Rows = [
        (row[NO], *sent, now, row[DECLARES], columns.MOST_TIMELINE)
        for row, sent in usual
        if row[STATE] is not None or row[DECLARES]
    ]
    stored = insert_many(db, "settle_first", first) + run_many(db, "settle_sent", later)
    ended = run_many(db, "drop_unfinished_range", ranges([row for row, _ in usual]))
    note_sent(db, usual, now)
    return stored == ended == len(usual)


def _sent_event(sent: Sent, now: int) -> str:
    attempts, _, provider, provider_id, ms = sent
    metadata = {
        "sesMessageId": provider_id,
        "provider": provider,
        "durationMs": ms,
        "attempt": attempts,
    }
    return f"{orjson.dumps(('SENT', now, metadata)).decode()},"


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
        self._buried: list[tuple[str, str, str | None, int, str, str | None, int | None]] = []
        self._unburied: list[str] = []
        self._touched: dict[int, list[int]] = {}
        self._freed: set[int] = set()
        self._noted: list[tuple[int, list[Any]]] = []

    def apply(self, held: Held, change: Change) -> None:
        """Add the change of a rule."""
        entry = held.entry
        self._changed.append((held, change.events))
        if figures := changed(held.was, entry, change, self.now):
            self._noted.append((held.message_no, figures))
        if change.park_until is not None:
            self._park(held, entry, change.park_until)
        if change.drop_job:
            self._drop(held, entry)
        if change.buried is not None:
            reason, failure, failed, group, waits_for = change.buried
            text = columns.failure_text(failure)
            waiting = (waits_for, self.now if waits_for else None)
            self._buried.append((entry.id, reason.value, text, failed, group, *waiting))
        if change.unburied:
            self._unburied.append(entry.id)

    def hold(self, held: Held, until: int) -> None:
        """Replace the lease by the hold of a declared attempt."""
        self._held.append((until, held.seat, held.message_no, held.claim))
        self._touch(held, until)

    def _drop(self, held: Held, entry: Entry, *, jobs: int = -1) -> None:
        """Remove the job from the queue."""
        if held.place is None or held.seat is None:
            return
        keys: dict[str, tuple[object, ...]] = {
            "ready": (held.seat, held.priority, entry.due_at, held.id),
            "delayed": (held.message_no,),
            "leased": (held.seat, held.message_no, held.claim),
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
        note_changed(db, self._noted, now)
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
        held = (entry.id, *job, place, position, length, expires_at, entry, was(entry))
        found[entry.id] = Held._make(held)
    return found
