"""The ledger half: entries are loaded, judged by the rules, and stored if nobody else changed them.

No lock is held while entries are judged. One statement stores them, and checks for every item that the entry is still
the judged version and that the job still has the same claim. Changed entries are loaded and judged again. A worker
that stops or loses its connection in between has stored nothing, and nobody waits for it.
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

_MOST_REMEMBERED = (
    10_000  # far more than slots: entries that were never settled nor released are forgotten
)
# An application requested a change by SQL, committed before this attempt: it comes first.
_TO_BE_APPLIED = model.Refused(model.RefusedWhy.NOT_DUE, timedelta(seconds=1))
_MOST_ROUNDS = 20  # others keep changing them: let the caller try again


async def _load(
    session: sql.Session, ids: Iterable[model.MessageId]
) -> dict[model.MessageId, Held]:
    rows = await session.fetch("load_entries", ids=list(dict.fromkeys(ids)))
    return {held.id: held for held in map(held_of, rows)}


def held_of(row: Any) -> Held:  # noqa: ANN401 - a row
    """An entry with its job, from the columns of `load_entries`."""
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
    """Entries as of their claim: most are still the same when they are declared or settled."""

    def __init__(self) -> None:
        self._held: dict[model.Lease, Held] = {}

    def keep(self, lease: model.Lease, held: Held) -> None:
        """Remember a job after its claim, or after a change was stored."""
        self._held[lease] = held
        if len(self._held) > _MOST_REMEMBERED:
            self._held.pop(next(iter(self._held)))

    def take(self, lease: model.Lease) -> Held | None:
        """Take a remembered job out: the rule that judges its entry changes it."""
        return self._held.pop(lease, None)

    def orphan(self, lease: model.Lease) -> Held | None:
        """The job, if it has no message."""
        held = self._held.get(lease)
        return held if held is not None and held.entry is None else None

    def forget(self, leases: Iterable[model.Lease]) -> None:
        """Forget jobs that were released or lost."""
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
        """Return the entries of these ids; unknown ones are left out."""
        return await _load(session, ids)

    async def save(
        self, session: sql.Session, changed: Sequence[tuple[Held, Change]], now: int
    ) -> tuple[int, bool]:
        """Store changes of entries that nobody else changed; return their number, and True if there may be work now."""
        changes = Changes(now)
        for held, change in changed:
            changes.apply(held, change if self._has_queue else without_jobs(change))
        stored, has_work = await changes.save(cast("Session", session))
        return len(stored), has_work

    async def write(
        self, asked: Sequence[Asked], *, declares: bool = False
    ) -> tuple[list[Any], bool]:
        """Judge and store until every item has its answer; entries that others changed are judged again."""
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
        """Return the judgements, each with its position, and its item if there is something to store; and the items.

        A remembered entry may be outdated: if the rule would change nothing, or refuse, it is left out and loaded.
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
    """The items left; if a message is twice in a list, the second is judged after the first is stored."""
    first: dict[model.MessageId, int] = {}
    for place, each in enumerate(asked):
        if place not in answers:
            first.setdefault(each.id, place)
    return sorted(first.values())


def without_jobs(change: Change) -> Change:
    """Return the change without its job, where a separate queue has the jobs."""
    return replace(change, drop_job=False, park_until=None)
