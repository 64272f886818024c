"""Claims: the walk of `carteiro.policy.turns` over the tables, inside one transaction.

The walk works on copies of the seats, which are written back once.
If killed before the commit, nothing was claimed; after it, the leases expire.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import zip_longest
from typing import Any

from carteiro import model
from carteiro.policy.fairness import READIED_PER_TURN
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pacing import Draw, Pace, Window, stepped_back
from carteiro.policy.turns import FAR, Kind, Seat, Share, Walk
from carteiro.stores.columns import recipient_of
from carteiro.stores.heeding import with_suppressed
from carteiro.stores.queue_columns import draws_of, draws_text
from carteiro.stores.sqlite.database import SqliteSession, finished
from carteiro.stores.sqlite.places import (
    DELIVERY,
    EXPIRES_AT,
    NO,
    RECIPIENT,
    REQUEST,
    STATE,
    TEMPLATE,
    TENANT,
    PlacedClaim,
    Places,
    Row,
)
from carteiro.stores.sqlite.rows import as_json, insert_many, run, run_many

_DELIVERIES = {each.value: each for each in model.Delivery}
_NO_ENTRY = (0, 0, 0, 0, 1, 0, None)  # as of `claim_entries`
_CLOCK_JITTER_MS = 1000  # a clock that is behind by more than this was set back


class Claim:
    """One claim call: the supply of its walk."""

    def __init__(
        self,
        db: sqlite3.Connection,
        *,
        kinds: Sequence[model.KindName],
        limit: int,
        ahead: int,
        now: int,
    ) -> None:
        self._db = db
        self._now = now
        self._limit = limit + ahead
        self._ahead = ahead
        self._names = as_json(kinds)
        self._kinds = {name: Kind(name) for name in kinds}
        self._windows: dict[model.KindName, Window] = {}
        self._draws: dict[model.KindName, list[Draw]] = {name: [] for name in kinds}
        self._shares: dict[model.TenantId, Share] = {}
        self._readied: set[int] = set()  # seats
        self._batch = self._per_seat = 1

    def take(
        self, *, fairness: model.Fairness, claim_id: model.ClaimId, lease: timedelta
    ) -> model.Claimed:
        """Lease due jobs, fair between tenants."""
        walk = self._awake()
        kinds = list(self._kinds.values())
        if fairness.enable_round_robin:
            self._batch = fairness.max_jobs_per_tenant_batch
            walk.fair(kinds, self._batch)
        elif self._limit > 0:
            walk.plain(kinds)
        until = self._now + lease // MILLISECOND
        if walk.taken:
            self._lease(walk, claim_id, until)
        if walk.moved:
            self._save_seats(walk, until)
        return model.Claimed(self._load(walk, claim_id) if walk.taken else [], self._idle_for())

    def _awake(self) -> Walk:
        """Read the clocks, and let the seats whose alarm has rung into the ring."""
        v = turn = seen_at = 0
        for name, *clock, count, per_ms, draws in run(self._db, "claim_clocks", kinds=self._names):
            v, turn, seen_at = max(v, clock[0]), max(turn, clock[1]), max(seen_at, clock[2])
            if count is not None:
                self._windows[name] = Window(count, per_ms)
                self._draws[name] = draws_of(draws)
                self._kinds[name].left = self._windows[name].left(self._draws[name], self._now)
        if self._now < seen_at - _CLOCK_JITTER_MS:
            run(self._db, "claim_alarm_all", kinds=self._names, now=self._now)
            self._draws = {
                name: stepped_back(draws, self._now) for name, draws in self._draws.items()
            }
            run(self._db, "claim_step_back", rows=self._drawn(), now=self._now)
        run(self._db, "claim_wake", kinds=self._names, turn=turn, now=self._now, far=FAR)
        return Walk(self, self._limit, self._ahead, self._now, v, turn)

    def _drawn(self) -> str:
        return as_json([(name, draws_text(draws)) for name, draws in self._draws.items()])

    # --- the supply of the walk

    def pages(self, kind: Kind) -> Iterator[list[Seat]]:
        """The ring of a kind, a page at a time, each seat with its first jobs."""
        after: dict[str, object] = {"vt": -1, "last_turn": -1, "tenant": ""}
        size = max(8, -(-self._limit // self._batch))
        asked = {"kind": kind.name, "limit": size}
        while rows := run(self._db, "claim_seats", **asked, **after).fetchall():
            seats = {row[0]: self._seat(kind, row) for row in rows}
            due = {"seats": as_json(list(seats)), "now": self._now, "longest": LONGEST_HOLD_MS}
            for [no] in run(self._db, "claim_due_seats", **due):
                seats[no].is_due = True
            self._per_seat = self._batch * -(-self._limit // (self._batch * len(seats)))
            for seat in seats.values():
                self.refill(seat, self._per_seat)
            yield list(seats.values())
            if len(rows) < size:
                return
            after = {"vt": rows[-1][2], "last_turn": rows[-1][3], "tenant": rows[-1][1]}

    def _seat(self, kind: Kind, row: Sequence[Any]) -> Seat:
        no, tenant, vt, last_turn, processed, stride, cap, rate, next_us, is_held, preset = row
        share = self._shares.get(tenant)
        if share is None:
            pace = None if rate is None else Pace.per_second(rate)
            share = Share(tenant, stride, cap, pace, next_us, bool(is_held), preset)
            self._shares[tenant] = share
        is_limited = bool(is_held or cap is not None or rate is not None or kind.left < FAR)
        return Seat(no, kind, share, vt, last_turn, processed, is_limited)

    def ready(self, seat: Seat) -> None:
        """Make due jobs of the seat ready, also those whose lease has expired."""
        asked = {"seat": seat.no, "now": self._now, "longest": LONGEST_HOLD_MS}
        due = run(self._db, "claim_due", **asked, limit=READIED_PER_TURN).fetchall()
        run(self._db, "ready_jobs", rows=as_json([(seat.no, number) for [number] in due]))
        self._readied.add(seat.no)
        seat.is_due = len(due) == READIED_PER_TURN
        seat.jobs, seat.at, seat.has_more = (), 0, True

    def refill(self, seat: Seat, wanted: int) -> None:
        """Look up the next ready jobs; those taken in this call are still in the table."""
        limit = len(seat.taken) + max(wanted, self._per_seat) + 1
        found = run(self._db, "claim_heads", seat=seat.no, limit=limit).fetchall()
        seat.has_more = len(found) == limit
        if seat.taken:
            taken = {job[2] for job in seat.taken}
            found = [job for job in found if job[2] not in taken]
        seat.jobs, seat.at = found, 0

    def in_flight(self, tenant: model.TenantId) -> tuple[int, int]:
        """The jobs that the tenant has in flight, and the first end of a lease."""
        asked = {"tenant": tenant, "now": self._now, "longest": LONGEST_HOLD_MS}
        count, first_end = run(self._db, "claim_in_flight", **asked).fetchone()
        return count, FAR if first_end is None else first_end

    # --- after the walk

    def _lease(self, walk: Walk, claim_id: model.ClaimId, until: int) -> None:
        seats = [seat for seat in walk.moved.values() if seat.taken]
        leases = [(seat.no, job[4], job[3] + 1) for seat in seats for job in seat.taken]
        insert_many(self._db, "claim_lease", leases, (claim_id, until))
        # The jobs of a seat are taken in order, but one that was made ready meanwhile may come before others.
        ends = [
            (seat.no, *seat.taken[0][:3], *seat.taken[-1][:3])
            for seat in seats
            if seat.no not in self._readied
        ]
        run_many(self._db, "claim_taken", ends)
        readied = [seat for seat in seats if seat.no in self._readied]
        others = [(seat.no, *job[:3]) for seat in readied for job in seat.taken]
        run_many(self._db, "drop_ready", others)
        for name, window in self._windows.items():
            if sends := self._kinds[name].sends:
                self._draws[name] = window.drawn(self._draws[name], self._now, sends, claim_id)
        clocks = {"v": walk.v, "turn": walk.turn, "now": self._now}
        run(self._db, "claim_save_clocks", rows=self._drawn(), **clocks)
        drawn = [(each.tenant, each.next_us) for each in self._shares.values() if each.has_drawn]
        if drawn:
            run(self._db, "draw_tokens", rows=as_json(drawn))

    def _save_seats(self, walk: Walk, until: int) -> None:
        """Write the seats; the alarm of an idle one is set now that the jobs of this claim are leased."""
        seats = walk.moved
        idle = [no for no, seat in seats.items() if seat.is_idle]
        asked = {"now": self._now, "longest": LONGEST_HOLD_MS, "far": FAR}
        for no, alarm in (
            run(self._db, "claim_alarms", seats=as_json(idle), **asked) if idle else ()
        ):
            seats[no].alarm = alarm
        served = {seat.share.tenant for seat, _ in walk.taken}
        for seat in seats.values():
            if seat.is_capped and seat.share.tenant in served and seat.alarm is not None:
                seat.alarm = min(seat.alarm, until)
        rows = [
            (
                *(each.vt, each.last_turn, each.alarm, each.processed + len(each.taken)),
                *(each.in_turn, self._now if each.taken else None, each.no),
            )
            for each in seats.values()
        ]
        run_many(self._db, "claim_save_seats", rows)

    def _load(self, walk: Walk, claim_id: model.ClaimId) -> list[model.LeasedJob]:
        taken = [job for _, jobs in walk.taken for job in jobs]
        numbers = [job[4] for job in taken]
        asked = as_json(sorted(numbers))  # neighbours share pages
        rows = run(self._db, "claim_load", numbers=asked).fetchall()
        found = {row[NO]: row for row in rows}
        contents: dict[int, str | None] = dict.fromkeys(found)
        contents.update(run(self._db, "claim_contents", numbers=asked).fetchall())
        left = {at: (at - self._now) * MILLISECOND for at in {row[EXPIRES_AT] for row in rows}}
        claim = PlacedClaim(claim_id)
        seats, following = _seats_of(walk)
        placed = {job[2]: found[job[4]] for job in taken if job[4] in found}
        claim.places = Places(placed, seats, following)
        shared = model.ClaimId(claim)
        jobs = [
            model.LeasedJob(  # without `*`, which costs as much as the object
                tuple.__new__(model.Lease, (job[2], shared)),  # takes less than `Lease`
                kind,
                share.tenant,
                job[3] + 1,
                contents[job[4]],
                row[TENANT],
                row[REQUEST],
                _DELIVERIES[row[DELIVERY]],
                0,
                0,
                0,
                1,
                False,  # noqa: FBT003 - as above: by position
                left[row[EXPIRES_AT]],
                False,  # noqa: FBT003
                None,
                None,
                share.retry_preset,
            )
            for seat, some in walk.taken
            for kind, share in ((seat.kind.name, seat.share),)
            for job in some
            if job[4] in found  # else its lease expires
            for row in (found[job[4]],)
        ]
        rare = [
            row
            for row in rows
            if row[STATE] is not None or row[RECIPIENT] is not None or row[TEMPLATE] is not None
        ]
        if rare:
            jobs = self._with_details(jobs, placed, rare)
        tenants = as_json(list({seat.share.tenant for seat, _ in walk.taken}))
        suppressing = {row[0] for row in run(self._db, "claim_suppressing", tenants=tenants)}
        if not suppressing:
            return jobs
        session = SqliteSession(self._db)
        return finished(with_suppressed(session, jobs, suppressing, self._now))

    def _with_details(
        self,
        jobs: Sequence[model.LeasedJob],
        placed: Mapping[model.MessageId, Row],
        rare: Sequence[Row],
    ) -> list[model.LeasedJob]:
        """Add what only these messages have: an entry, a recipient, a template type."""
        recipients = _recipients(self._db, {row[RECIPIENT] for row in rare} - {None})
        types = {(row[TENANT], row[TEMPLATE]) for row in rare if row[TEMPLATE] is not None}
        presets = _presets(self._db, types)
        entries = _entries(self._db, [row[NO] for row in rare if row[STATE] is not None])
        detailed = {row[NO] for row in rare}
        return [
            model.LeasedJob(
                *(job.lease, job.kind, job.tenant, job.claims, job.content, job.ledger_tenant),
                *(job.request_id, job.delivery, entry[1], entry[2], entry[3], entry[4]),
                row[STATE] == "SENT_ATTEMPT",
                *(job.expires_in, entry[5] == 1, row[RECIPIENT], recipients.get(row[RECIPIENT])),
                presets.get((row[TENANT], row[TEMPLATE])) or job.retry_preset,
                entry[6],
            )
            if (row := placed[job.lease.job])[NO] in detailed
            and (entry := entries.get(row[NO], _NO_ENTRY))
            else job
            for job in jobs
        ]

    def _idle_for(self) -> timedelta | None:
        times = []
        for name, is_in_ring, alarm in run(self._db, "claim_idle", kinds=self._names):
            if is_in_ring and self._kinds[name].left > 0:
                return timedelta(0)
            if is_in_ring:
                times.append(self._windows[name].wakes_at(self._draws[name], self._now))
            if alarm is not None and alarm < FAR:
                times.append(alarm)
        return max(0, min(times) - self._now) * MILLISECOND if times else None


def _seats_of(walk: Walk) -> tuple[Mapping[int, int], Mapping[int, int | None]]:
    """By the number of each job that was taken, its seat, and the number of the next one there."""
    seats: dict[int, int] = {}
    following: dict[int, int | None] = {}
    for seat in walk.moved.values():
        numbers = sorted([job[4] for job in seat.taken])
        seats.update(dict.fromkeys(numbers, seat.no))
        following.update(zip_longest(numbers, numbers[1:]))
    return seats, following


def _entries(db: sqlite3.Connection, numbers: Sequence[int]) -> Mapping[int, Sequence[Any]]:
    """The entries of these messages, by their number."""
    rows = run(db, "claim_entries", numbers=as_json(numbers)) if numbers else ()
    return {row[0]: row for row in rows}


def _recipients(db: sqlite3.Connection, ids: set[str]) -> Mapping[str, model.Recipient]:
    """The recipients with these ids, deleted or not."""
    rows = run(db, "claim_recipients", ids=as_json(sorted(ids))) if ids else ()
    return {recipient.id: recipient for recipient in map(recipient_of, rows)}


def _presets(
    db: sqlite3.Connection, types: set[tuple[str, str]]
) -> Mapping[tuple[str, str], str | None]:
    """The retry presets of template types, each of its tenant, of those in use."""
    rows = run(db, "claim_presets", types=as_json(sorted(types))) if types else ()
    return {(tenant, type_): preset for tenant, type_, preset in rows}
