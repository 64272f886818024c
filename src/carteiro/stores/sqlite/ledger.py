"""The ledger half inside one transaction: load entries, apply the rules, save, write events, move jobs.

Every function here runs in the writer's transaction: if killed anywhere, nothing is stored.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from carteiro import model
from carteiro.policy.lifecycle import Change, Entry, Stamped
from carteiro.stores.columns import FAR, entry_of, entry_row, failure_text
from carteiro.stores.sql.ledger import Asked
from carteiro.stores.sql.session import Session
from carteiro.stores.sqlite.database import SqliteSession
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.rows import as_json, run, with_documents
from carteiro.stores.sqlite.writer import Writer


class Held(NamedTuple):
    """An entry with its job; ``entry`` None: the queue knows it, the ledger does not."""

    id: model.MessageId
    message_no: int | None
    claim: model.ClaimId | None
    parked_until: int | None
    kind: str | None
    tenant: str | None
    is_parked: bool
    has_job: bool
    entry: Entry | None


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
        clock, has_queue = self._options.clock, self._options.has_queue
        ttl_ms = self._options.dead_letter_ttl_ms

        def write(db: sqlite3.Connection) -> tuple[list[Any], bool]:
            changes = Changes(db, clock(), has_queue=has_queue)
            return _write(changes, asked, dead_letter_ttl_ms=ttl_ms, declares=declares)

        return await self._writer.do(write)


def _connection(session: Session) -> sqlite3.Connection:
    return cast("SqliteSession", session).connection


class Changes:
    """Changes of one operation, collected so that each table is written once."""

    def __init__(self, db: sqlite3.Connection, now: int, *, has_queue: bool) -> None:
        self.db = db
        self.now = now
        self._has_queue = has_queue  # else a separate queue has the jobs, and others move them
        # By message number; the change is None if there were several.
        self._entries: dict[int | None, tuple[Entry, Change | None]] = {}
        self._events: list[list[object]] = []
        self._held: list[tuple[str, int | None]] = []
        self._parked: list[tuple[str, int]] = []
        self._dropped_parked: list[str] = []
        self._dropped_ready: list[str] = []
        self._buried: list[tuple[str, str, str | None, int]] = []
        self._unburied: list[str] = []
        self._touched: dict[tuple[str | None, str | None], list[int]] = {}
        self._freed: set[str] = set()

    def apply(self, held: Held, change: Change) -> None:
        """Add the change of a rule."""
        entry = held.entry
        if entry is None:  # rules only change what the ledger has
            return
        is_first = held.message_no not in self._entries
        self._entries[held.message_no] = (entry, change if is_first else None)
        self.write_events(entry.id, change.events)
        if change.park_until is not None:
            self._park(held, change.park_until)
        if change.drop_job:
            self.drop(held)
        if change.buried is not None:
            reason, failure, failed = change.buried
            self._buried.append((entry.id, reason.value, failure_text(failure), failed))
        if change.unburied:
            self._unburied.append(entry.id)

    def write_events(self, message: model.MessageId, events: Iterable[Stamped]) -> None:
        """Add events of a message."""
        for event in events:
            self._events.append([message, event.type, event.metadata, event.at])

    def hold(self, held: Held, until: int | None) -> None:
        """Replace the lease by the hold of a declared attempt."""
        self._held.append((held.id, until))
        self.touch(held.kind, held.tenant, FAR if until is None else until)

    def drop(self, held: Held) -> None:
        """Remove the job from the queue."""
        if held.has_job:
            dropped = self._dropped_parked if held.is_parked else self._dropped_ready
            dropped.append(held.id)
            self.touch(held.kind, held.tenant, FAR, jobs=-1)
            self._free(held)

    def touch(self, kind: str | None, tenant: str | None, at: int, *, jobs: int = 0) -> None:
        """Set the seat's alarm; count its jobs."""
        if not self._has_queue:
            return
        seat = self._touched.setdefault((kind, tenant), [FAR, 0])
        seat[0] = min(seat[0], at)
        seat[1] += jobs

    def _save_entries(self) -> None:
        """Write the usual changes with statements of their own, for only the columns that they change."""
        begun, sent, retried, other = [], [], [], []
        for no, (e, change) in self._entries.items():
            if self._held:  # only declare holds, and it changes nothing else
                begun.append((no, e.attempts, e.in_doubt, e.holder, e.held_until, e.provider))
            elif change is None or e.evidence is not None:
                other.append([no, *entry_row(e)])
            elif change.drop_job and e.state is model.State.SENT:
                taken = (e.provider, e.provider_id, e.duration_ms, e.finished_at)
                sent.append((no, e.attempts, e.in_doubt, e.holder, *taken))
            elif change.park_until is not None:
                told = (e.due_at, failure_text(e.failure), e.duration_ms)
                retried.append((no, e.attempts, e.charged, e.in_doubt, e.holder, *told))
            else:
                other.append([no, *entry_row(e)])
        if begun:
            run(self.db, "declare", rows=as_json(begun))
        if sent:
            run(self.db, "settle_sent", rows=as_json(sent))
        if retried:
            run(self.db, "settle_retried", rows=as_json(retried))
        if other:
            run(self.db, "save_entries", rows=as_json(other))

    def _park(self, held: Held, until: int) -> None:
        self._parked.append((held.id, until))
        self.touch(held.kind, held.tenant, until)
        self._free(held)

    def _free(self, held: Held) -> None:
        if held.claim is not None and held.tenant is not None:
            self._freed.add(held.tenant)

    def save(self, *, dead_letter_ttl_ms: int = 0) -> bool:
        """Write everything, one statement per table; True if a job may be claimed sooner than before."""
        db, now = self.db, self.now
        self._save_entries()
        if self._events:
            run(db, "write_events", rows=with_documents(self._events))
        if self._buried:
            run(db, "bury", rows=as_json(self._buried), now=now, ttl_ms=dead_letter_ttl_ms)
        if self._unburied:
            run(db, "unbury", ids=as_json(self._unburied))
        return self._has_queue and self._move_jobs()

    def _move_jobs(self) -> bool:
        db, now = self.db, self.now
        if self._held:
            run(db, "hold_parked", rows=as_json(self._held))
        if self._parked:
            run(db, "park_settled", rows=as_json(self._parked))
            make_ready(db, [identity for identity, until in self._parked if until <= now])
        if self._dropped_parked:
            run(db, "drop_parked", ids=as_json(self._dropped_parked))
        if self._dropped_ready:
            run(db, "drop_ready", ids=as_json(self._dropped_ready))
        touch_seats(db, self._touched)
        has_freed = free_slots(db, self._freed, now)
        return has_freed or bool(self._parked)


def make_ready(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Make parked jobs claimable now."""
    if ids:
        listed = as_json(ids)
        run(db, "ready_parked", ids=listed)
        run(db, "drop_parked", ids=listed)


def touch_seats(
    db: sqlite3.Connection, touched: Mapping[tuple[str | None, str | None], list[int]]
) -> None:
    """Set alarms and counts: (kind, tenant) -> [wake_at, jobs more or less]."""
    if touched:
        rows = [(*seat, *alarm_and_jobs) for seat, alarm_and_jobs in touched.items()]
        run(db, "touch_seats", rows=as_json(rows))


def free_slots(db: sqlite3.Connection, tenants: Iterable[str], now: int) -> bool:
    """Record a free slot of these tenants; True if one of them waited for it."""
    freed = sorted(tenants)
    return bool(freed) and run(db, "free_slots", tenants=as_json(freed), now=now).rowcount > 0


def load(db: sqlite3.Connection, ids: Sequence[model.MessageId]) -> dict[model.MessageId, Held]:
    """The entries of the ids, with their jobs."""
    found = {}
    for row in run(db, "load_entries", ids=as_json(ids)):
        identity, number, claim, parked_until, kind, tenant, is_parked, is_unfinished = row[:8]
        entry = entry_of(row[8:]) if number is not None else None
        has_job = bool(is_parked or is_unfinished)
        found[identity] = Held(
            identity, number, claim, parked_until, kind, tenant, bool(is_parked), has_job, entry
        )
    return found


def _write(
    changes: Changes, asked: Sequence[Asked], *, dead_letter_ttl_ms: int, declares: bool
) -> tuple[list[Any], bool]:
    found = load(changes.db, [each.id for each in asked])
    has_twins = len(found) < len(asked)
    answers = []
    for each in asked:
        held = found[each.id]
        answer, change, owner = each.judge(held, changes.now)
        answers.append(answer)
        if held.entry is None:
            if owner:
                changes.drop(held)
        elif change is not None:
            changes.apply(held, change)
            if declares:
                changes.hold(held, held.entry.held_until)
            elif has_twins:
                found[held.id] = _after(held, change)
    return answers, changes.save(dead_letter_ttl_ms=dead_letter_ttl_ms)


def _after(held: Held, change: Change) -> Held:
    """Return the state that a second request of the same batch for the same message finds."""
    if change.drop_job:
        return held._replace(claim=None, parked_until=None, is_parked=False, has_job=False)
    if change.park_until is not None:
        return held._replace(claim=None, parked_until=change.park_until)
    return held
