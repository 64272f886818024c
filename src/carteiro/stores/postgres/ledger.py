"""The ledger half: entries are loaded, judged by the rules, and stored if nobody changed them meanwhile.

Nobody holds a lock while it thinks: each store is one statement that checks for every item that the
entry is still the version that was judged, and the job still the claim's. What changed meanwhile is
loaded and judged again. A worker that is stopped or cut off in between has stored nothing, and
keeps nobody waiting.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from carteiro import model
from carteiro.errors import StoreUnavailable, TransitionRefused
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import Change, is_live
from carteiro.stores.columns import entry_of
from carteiro.stores.postgres.changes import Changes, Held
from carteiro.stores.postgres.database import Database, Session

_MOST_REMEMBERED = 10_000  # far more than slots: what was never settled nor given back is forgotten
# An application requested a change by SQL, and it was committed before this attempt: it comes first.
TO_BE_APPLIED = model.Refused(model.RefusedWhy.NOT_DUE, timedelta(seconds=1))
_MOST_ROUNDS = 20  # somebody changes them as fast as we judge: let the caller try again


async def load(
    session: Session | Database, ids: Iterable[model.MessageId]
) -> dict[model.MessageId, Held]:
    """The entries of those of the ids that there are, with their jobs."""
    wanted = list(dict.fromkeys(ids))
    rows = await session.fetch("load_entries", wanted)
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


class Judged(NamedTuple):
    """What a rule answers, and what it leaves to be stored."""

    answer: Any
    change: Change | None = None
    owner: bool = False
    hold: int | None = None


class Asked(NamedTuple):
    """One item of a list: the message that it is about, on whose claim, and the rule that judges it."""

    id: model.MessageId
    lease: model.Lease | None
    judged: Callable[[Held | None, int], Judged]


class Ledger:
    """Declares, settles and cancels."""

    def __init__(self, db: Database, *, dead_letter_ttl_ms: int) -> None:
        self._db = db
        self._ttl_ms = dead_letter_ttl_ms
        self.memory = Memory()

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made."""
        asked = [Asked(each.lease.job, each.lease, partial(_begin, each)) for each in starts]
        answers, _ = await self.write(asked, keeps=True)
        return answers

    async def settle(
        self, ends: Sequence[model.End]
    ) -> tuple[list[model.Settled | model.Late], bool]:
        """Store verdicts: state, events, queue and dead letter at once; True if there may be work now."""
        for end in ends:
            if (orphan := self.memory.orphan(end.lease)) is not None:
                await self._db.fetch("drop_orphans", [orphan.message_no], end.lease.claim)
        return await self.write(
            [Asked(each.lease.job, each.lease, partial(_finish, each)) for each in ends]
        )

    async def cancel(
        self, ids: Sequence[model.MessageId], tenant: model.TenantId
    ) -> tuple[list[model.CancelAnswer], bool]:
        """End what waits, mark what is in flight; True if there may be work now."""
        return await self.write([Asked(each, None, partial(_cancel, tenant)) for each in ids])

    async def write(self, asked: Sequence[Asked], *, keeps: bool = False) -> tuple[list[Any], bool]:
        """Judge and store until every item has its answer; what others changed meanwhile is judged again."""
        answers: dict[int, Any] = {}
        found = self._remembered(asked)
        has_work = False
        for _ in range(_MOST_ROUNDS):
            left = _without_twins(asked, answers)
            if not left:
                return [answers[place] for place in range(len(asked))], has_work
            missing = [asked[place].id for place in left if asked[place].id not in found]
            if missing:
                found |= await load(self._db, missing)
            judged, changes = _judge(asked, left, found, await self._db.now())
            stored, may_work = await changes.save(self._db, dead_letter_ttl_ms=self._ttl_ms)
            has_work |= may_work
            for place, result, item in judged:
                if item is None:
                    answers[place] = result.answer
                elif item in stored:
                    answers[place] = result.answer
                    self._keep(asked[place].lease, changes.held[item], keeps=keeps)
            found = {}
        raise StoreUnavailable("The messages change faster than they can be stored: try again")

    def _remembered(self, asked: Sequence[Asked]) -> dict[model.MessageId, Held]:
        taken = [self.memory.take(each.lease) for each in asked if each.lease is not None]
        return {held.id: held for held in taken if held is not None}

    def _keep(self, lease: model.Lease | None, held: Held, *, keeps: bool) -> None:
        if keeps and lease is not None:
            self.memory.keep(lease, held._replace(version=held.version + 1, is_remembered=True))


def _judge(
    asked: Sequence[Asked], places: Sequence[int], found: Mapping[model.MessageId, Held], now: int
) -> tuple[list[tuple[int, Judged, int | None]], Changes]:
    """What the rules say, and what is to be stored: each with its place, and its item if it has one.

    What is merely remembered, and would change nothing or may not be changed so, may be so no longer:
    it is left out.
    """
    changes = Changes(now)
    judged: list[tuple[int, Judged, int | None]] = []
    for place in places:
        held = found.get(asked[place].id)
        try:
            result = asked[place].judged(held, now)
        except TransitionRefused:
            if held is None or not held.is_remembered:
                raise
            continue
        if held is not None and result.change is not None:
            judged.append((place, result, len(changes.held)))
            changes.apply(held, result.change, owner=result.owner, hold=result.hold)
        elif held is None or held.entry is None or not held.is_remembered:
            judged.append((place, result, None))
    return judged, changes


def _without_twins(asked: Sequence[Asked], answers: Mapping[int, object]) -> list[int]:
    """What is left; the same message twice in one list: the second is judged when the first is stored."""
    first: dict[model.MessageId, int] = {}
    for place, each in enumerate(asked):
        if place not in answers:
            first.setdefault(each.id, place)
    return sorted(first.values())


def _begin(start: model.Start, held: Held | None, now: int) -> Judged:
    if held is None or held.entry is None:
        return Judged(model.Refused(model.RefusedWhy.LOST))
    owner = held.claim == start.lease.claim
    answer, change = lifecycle.begin(held.entry, start, owner=owner, now=now)
    if held.is_requested and change is not None:
        return Judged(TO_BE_APPLIED)
    return Judged(answer, change, owner, held.entry.held_until)


def _finish(end: model.End, held: Held | None, now: int) -> Judged:
    if held is None:
        return Judged(model.Late(None))
    if held.entry is None:  # no message stands for the job: it has left the queue
        return Judged(model.Settled(model.State.FAILED))
    owner = held.is_leased and held.claim == end.lease.claim
    answer, change = lifecycle.finish(held.entry, end, owner=owner, now=now)
    return Judged(answer, change, owner)


def _cancel(tenant: model.TenantId, held: Held | None, now: int) -> Judged:
    if held is None or held.entry is None or held.entry.tenant != tenant:
        return Judged(model.CancelAnswer.NOT_FOUND)
    return Judged(*lifecycle.cancel(held.entry, leased=is_leased(held, now), now=now))


def without_jobs(change: Change | None) -> Change | None:
    """The change where jobs are kept elsewhere, and are moved by others."""
    return None if change is None else replace(change, drop_job=False, park_until=None)


def is_leased(held: Held, now: int) -> bool:
    """Whether a worker has the job now."""
    return held.claim is not None and is_live(held.parked_until, now)


async def expire(
    db: Database, limit: int, now: int, *, dead_letter_ttl_ms: int
) -> tuple[int, bool]:
    """Bury what was not sent by its time, past what is in flight; True if there may be work now."""
    expired, at, after, has_work = 0, -1, -1, False
    while expired < limit:
        page = await db.fetch("expire_find", now, at, after, limit)
        changes = Changes(now)
        for held in (await load(db, [row[0] for row in page])).values():
            if len(changes.held) + expired == limit or held.entry is None:
                continue
            change = lifecycle.expire(held.entry, leased=is_leased(held, now), now=now)
            if change is not None:
                changes.apply(held, change)
        stored, may_work = await changes.save(db, dead_letter_ttl_ms=dead_letter_ttl_ms)
        expired += len(stored)
        has_work |= may_work
        if len(page) < limit:
            break
        _, at, after = page[-1]
    return expired, has_work


async def cancel(
    session: Session | Database,
    ids: Sequence[model.MessageId],
    tenant: model.TenantId,
    now: int,
) -> tuple[list[model.CancelAnswer], bool]:
    """Cancel once: what somebody changes at this moment stays as it is, and is found again."""
    found = await load(session, ids)
    asked = [Asked(each, None, partial(_cancel, tenant)) for each in dict.fromkeys(ids)]
    judged, changes = _judge(asked, range(len(asked)), found, now)
    _, has_work = await changes.save(session)
    return [result.answer for _, result, _ in judged], has_work
