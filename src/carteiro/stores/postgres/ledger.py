"""The ledger half: entries are loaded, judged by the rules, and stored if nobody changed them meanwhile.

Nobody holds a lock while it thinks: each store is one statement that checks for every item that the
entry is still the version that was judged, and the job still the claim's. What changed meanwhile is
loaded and judged again. A worker that is stopped or cut off in between has stored nothing, and
keeps nobody waiting.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from carteiro import model
from carteiro.errors import StoreUnavailable, TransitionRefused
from carteiro.policy.lifecycle import Change
from carteiro.stores.columns import entry_of
from carteiro.stores.postgres.changes import Changes, Held
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.sql import session as sql
from carteiro.stores.sql.ledger import Asked, Judged

_MOST_REMEMBERED = 10_000  # far more than slots: what was never settled nor given back is forgotten
# An application requested a change by SQL, and it was committed before this attempt: it comes first.
_TO_BE_APPLIED = model.Refused(model.RefusedWhy.NOT_DUE, timedelta(seconds=1))
_MOST_ROUNDS = 20  # somebody changes them as fast as we judge: let the caller try again


async def _load(
    session: sql.Session, ids: Iterable[model.MessageId]
) -> dict[model.MessageId, Held]:
    rows = await session.fetch("load_entries", ids=list(dict.fromkeys(ids)))
    return {held.id: held for held in map(held_of, rows)}


def held_of(row: Any) -> Held:  # noqa: ANN401 - a row
    """An entry with its job, out of the columns of `load_entries`."""
    number, version, claim, parked_until, is_leased, is_requested, *columns = row
    entry = entry_of(columns)
    return Held(
        entry.id,
        number,
        version,
        entry.kind,
        entry.tenant,
        entry,
        claim,
        parked_until,
        is_leased,
        is_requested=is_requested,
    )


class Memory:
    """What was claimed here, as it was then: most of it comes back to be declared or settled unchanged."""

    def __init__(self) -> None:
        self._held: dict[model.Lease, Held] = {}

    def keep(self, lease: model.Lease, held: Held) -> None:
        """Remember a job just claimed, or what was just stored of it."""
        self._held[lease] = held
        if len(self._held) > _MOST_REMEMBERED:
            self._held.pop(next(iter(self._held)))

    def take(self, lease: model.Lease) -> Held | None:
        """What is remembered, once: its entry is changed by whoever judges it."""
        return self._held.pop(lease, None)

    def orphan(self, lease: model.Lease) -> Held | None:
        """The job, if no message stands for it."""
        held = self._held.get(lease)
        return held if held is not None and held.entry is None else None

    def forget(self, leases: Iterable[model.Lease]) -> None:
        """They are given back, or lost."""
        for lease in leases:
            self._held.pop(lease, None)


class PostgresEntries:
    """See `carteiro.stores.sql.ledger.Entries`."""

    def __init__(self, db: Database, options: PostgresOptions) -> None:
        self._db = db
        self._ttl_ms = options.dead_letter_ttl_ms
        self._has_queue = options.has_queue
        self.memory = Memory()

    async def load(
        self, session: sql.Session, ids: Sequence[model.MessageId]
    ) -> dict[model.MessageId, Held]:
        """Return the entries of those of the ids that there are."""
        return await _load(session, ids)

    async def save(
        self, session: sql.Session, changed: Sequence[tuple[Held, Change]], now: int
    ) -> tuple[int, bool]:
        """Store changes of entries that nobody changed meanwhile: how many; True if there may be work now."""
        changes = Changes(now)
        for held, change in changed:
            changes.apply(held, change if self._has_queue else without_jobs(change))
        stored, has_work = await changes.save(cast("Session", session))
        return len(stored), has_work

    async def write(
        self, asked: Sequence[Asked], *, declares: bool = False
    ) -> tuple[list[Any], bool]:
        """Judge and store until every item has its answer; what others changed meanwhile is judged again."""
        if not declares:
            await self._drop_orphans(asked)
        answers: dict[int, Any] = {}
        found = self._remembered(asked)
        has_work = False
        for _ in range(_MOST_ROUNDS):
            left = _without_twins(asked, answers)
            if not left:
                return [answers[place] for place in range(len(asked))], has_work
            missing = [asked[place].id for place in left if asked[place].id not in found]
            if missing:
                found |= await _load(self._db, missing)
            judged, changes = self._judge(asked, left, found, await self._db.now(), declares)
            stored, may_work = await changes.save(self._db, dead_letter_ttl_ms=self._ttl_ms)
            has_work |= may_work
            for place, result, item in judged:
                if item is None:
                    answers[place] = result.answer
                elif item in stored:
                    answers[place] = result.answer
                    if declares:
                        self._keep(asked[place].lease, changes.held[item])
            found = {}
        raise StoreUnavailable("The messages change faster than they can be stored: try again")

    def _remembered(self, asked: Sequence[Asked]) -> dict[model.MessageId, Held]:
        taken = [self.memory.take(each.lease) for each in asked if each.lease is not None]
        return {held.id: held for held in taken if held is not None}

    def _keep(self, lease: model.Lease | None, held: Held) -> None:
        if lease is not None:
            self.memory.keep(lease, held._replace(version=held.version + 1, is_remembered=True))

    async def _drop_orphans(self, asked: Sequence[Asked]) -> None:
        for lease in [each.lease for each in asked if each.lease is not None]:
            if (orphan := self.memory.orphan(lease)) is not None:
                await self._db.fetch("drop_orphans", [orphan.message_no], lease.claim)

    def _judge(
        self,
        asked: Sequence[Asked],
        places: Sequence[int],
        found: Mapping[model.MessageId, Held],
        now: int,
        declares: bool,  # noqa: FBT001 - as asked of `write`
    ) -> tuple[list[tuple[int, Judged, int | None]], Changes]:
        """Return what the rules say, each with its place and its item if something is to be stored; and the items.

        What is only remembered may no longer be so: if nothing would change, or not like this, it is left out.
        """
        changes = Changes(now)
        judged: list[tuple[int, Judged, int | None]] = []
        for place in places:
            held = found.get(asked[place].id)
            try:
                result = asked[place].judge(held, now)
            except TransitionRefused:
                if held is None or not held.is_remembered:
                    raise
                continue
            if held is None or held.entry is None or result.change is None:
                if held is None or held.entry is None or not held.is_remembered:
                    judged.append((place, result, None))
            elif declares and held.is_requested:
                judged.append((place, Judged(_TO_BE_APPLIED), None))
            else:
                judged.append((place, result, len(changes.held)))
                change = result.change if self._has_queue else without_jobs(result.change)
                hold = held.entry.held_until if declares and self._has_queue else None
                changes.apply(held, change, owner=result.owner, hold=hold)
        return judged, changes


def _without_twins(asked: Sequence[Asked], answers: Mapping[int, object]) -> list[int]:
    """What is left; the same message twice in one list: the second is judged when the first is stored."""
    first: dict[model.MessageId, int] = {}
    for place, each in enumerate(asked):
        if place not in answers:
            first.setdefault(each.id, place)
    return sorted(first.values())


def without_jobs(change: Change) -> Change:
    """Return the change where jobs are kept elsewhere, and are moved by others."""
    return replace(change, drop_job=False, park_until=None)
