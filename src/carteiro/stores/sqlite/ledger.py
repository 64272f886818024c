"""The ledger half inside one transaction: load entries, apply the rules, save, write events, move jobs.

Every function here runs in the writer's transaction: killed anywhere, nothing of it is seen.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from carteiro import model
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import Change, Entry, Stamped, is_live
from carteiro.policy.pairing import owns_end, owns_start
from carteiro.stores.columns import FAR, entry_of, entry_row, failure_text
from carteiro.stores.sqlite.rows import as_json, run, with_documents

Told: TypeAlias = Sequence[bool | None]  # by a queue elsewhere; None where it cannot say


class Held(NamedTuple):
    """An entry with the job that stands for it; ``entry`` None: the queue knows it, the ledger does not."""

    id: model.MessageId
    message_no: int | None
    claim: model.ClaimId | None
    parked_until: int | None
    kind: str | None
    tenant: str | None
    is_parked: bool
    has_job: bool
    entry: Entry | None


class Changes:
    """What one operation leaves to be written, gathered so that each table is written once."""

    def __init__(self, db: sqlite3.Connection, now: int, *, has_queue: bool = True) -> None:
        self.db = db
        self.now = now
        self._has_queue = has_queue  # else jobs are kept elsewhere, and others move them
        # By the number of their message, each with its change: None if there were several.
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
        """Note what a rule changed."""
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
        """Note events of a message."""
        for event in events:
            self._events.append([message, event.type, event.metadata, event.at])

    def hold(self, held: Held, until: int | None) -> None:
        """The hold of a declared attempt replaces the lease."""
        self._held.append((held.id, until))
        self.touch(held.kind, held.tenant, FAR if until is None else until)

    def drop(self, held: Held) -> None:
        """The job leaves the queue."""
        if held.has_job:
            dropped = self._dropped_parked if held.is_parked else self._dropped_ready
            dropped.append(held.id)
            self.touch(held.kind, held.tenant, FAR, jobs=-1)
            self._free(held)

    def touch(self, kind: str | None, tenant: str | None, at: int, *, jobs: int = 0) -> None:
        """Look at the seat again at that time; count its jobs."""
        if not self._has_queue:
            return
        seat = self._touched.setdefault((kind, tenant), [FAR, 0])
        seat[0] = min(seat[0], at)
        seat[1] += jobs

    def _save_entries(self) -> None:
        """The usual changes have statements of their own, for the columns that they change."""
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
        """Write everything, a statement a table; True if a job may be claimed sooner than before."""
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
    """Parked jobs become claimable now."""
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
    """A slot of these tenants became free; True if one of them waited for it."""
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


def declare(
    db: sqlite3.Connection, starts: Sequence[model.Start], now: int, *, told: Told | None = None
) -> list[model.Begun | model.Refused]:
    """Make attempts durable before they are made; ``told``: what a queue elsewhere says of each claim."""
    found = load(db, [start.lease.job for start in starts])
    changes = Changes(db, now, has_queue=told is None)
    answers: list[model.Begun | model.Refused] = []
    for place, start in enumerate(starts):
        held = found[start.lease.job]
        if held.entry is None:
            answers.append(model.Refused(model.RefusedWhy.LOST))
            continue
        owner = (
            held.claim == start.lease.claim
            if told is None
            else owns_start(held.entry, start.lease.claim, told=told[place], now=now)
        )
        answer, change = lifecycle.begin(held.entry, start, owner=owner, now=now)
        if change is not None:
            changes.apply(held, change)
            changes.hold(held, held.entry.held_until)
        answers.append(answer)
    changes.save()
    return answers


def settle(
    db: sqlite3.Connection,
    ends: Sequence[model.End],
    now: int,
    *,
    dead_letter_ttl_ms: int,
    told: Told | None = None,
) -> tuple[list[model.Settled | model.Late], bool]:
    """Store verdicts: state, events, queue and dead letter at once; True if there may be work now.

    ``told``: what a queue elsewhere says of each claim.
    """
    found = load(db, [end.lease.job for end in ends])
    has_twins = len(found) < len(ends)
    changes = Changes(db, now, has_queue=told is None)
    answers: list[model.Settled | model.Late] = []
    for place, end in enumerate(ends):
        held = found[end.lease.job]
        if told is None or held.entry is None:
            owner = held.has_job and held.claim == end.lease.claim
        else:
            owner = owns_end(held.entry, end, told=told[place], now=now)
        if held.entry is None:
            if owner:
                changes.drop(held)
            answers.append(model.Settled(model.State.FAILED) if owner else model.Late(None))
            continue
        answer, change = lifecycle.finish(held.entry, end, owner=owner, now=now)
        if change is not None:
            changes.apply(held, change)
            if has_twins:
                found[held.id] = _after(held, change)
        answers.append(answer)
    return answers, changes.save(dead_letter_ttl_ms=dead_letter_ttl_ms)


def _after(held: Held, change: Change) -> Held:
    """The same message may be settled twice in one batch: the second finds what the first left."""
    if change.drop_job:
        return held._replace(claim=None, parked_until=None, is_parked=False, has_job=False)
    if change.park_until is not None:
        return held._replace(claim=None, parked_until=change.park_until)
    return held


def cancel(
    db: sqlite3.Connection,
    ids: Sequence[model.MessageId],
    tenant: model.TenantId,
    now: int,
    *,
    told: Told | None = None,
) -> tuple[list[model.CancelAnswer], bool]:
    """End what waits, mark what is in flight; True if there may be work now.

    ``told``: whether a queue elsewhere has a live lease on each.
    """
    found = load(db, ids)
    changes = Changes(db, now, has_queue=told is None)
    answers = []
    for place, identity in enumerate(ids):
        held = found[identity]
        if held.entry is None or held.entry.tenant != tenant:
            answers.append(model.CancelAnswer.NOT_FOUND)
            continue
        is_leased = _is_leased(held, now) if told is None else told[place] is not False
        answer, change = lifecycle.cancel(held.entry, leased=is_leased, now=now)
        if change is not None:
            changes.apply(held, change)
            found[identity] = _after(held, change)
        answers.append(answer)
    return answers, changes.save()


def expire(
    db: sqlite3.Connection, limit: int, now: int, *, dead_letter_ttl_ms: int
) -> tuple[int, bool]:
    """Bury what was not sent by its time, past what is in flight; True if there may be work now."""
    expired, at, after, has_work = 0, -FAR, "", False
    while expired < limit:
        page = run(db, "expire_find", now=now, expires_at=at, id=after, limit=limit).fetchall()
        changes = Changes(db, now)
        for held in load(db, [row[0] for row in page]).values():
            entry = held.entry
            if expired == limit or entry is None:
                continue
            change = lifecycle.expire(entry, leased=_is_leased(held, now), now=now)
            if change is not None:
                changes.apply(held, change)
                expired += 1
        has_work |= changes.save(dead_letter_ttl_ms=dead_letter_ttl_ms)
        if len(page) < limit:
            break
        after, at = page[-1]
    return expired, has_work


def expire_these(
    db: sqlite3.Connection,
    ids: Sequence[model.MessageId],
    now: int,
    *,
    dead_letter_ttl_ms: int,
    told: Told,
) -> list[model.MessageId]:
    """Bury those that were not sent by their time; ``told``: whether a queue elsewhere has a live lease on each."""
    found = load(db, ids)
    changes = Changes(db, now, has_queue=False)
    expired = []
    for identity, is_leased in zip(ids, told, strict=True):
        held = found[identity]
        if held.entry is None:
            continue
        change = lifecycle.expire(held.entry, leased=is_leased is not False, now=now)
        if change is not None:
            changes.apply(held, change)
            expired.append(identity)
    changes.save(dead_letter_ttl_ms=dead_letter_ttl_ms)
    return expired


def _is_leased(held: Held, now: int) -> bool:
    return held.claim is not None and is_live(held.parked_until, now)
