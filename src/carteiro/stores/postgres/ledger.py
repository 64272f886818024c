"""The ledger half: the usual attempts by lists, all others by the rules.

First attempts and sent messages are one statement a list, which leaves out those that need a rule. These are loaded,
judged and stored, without a lock in between: the statement that stores them checks for every item that the entry is
still the judged version and that the job still has the same claim. Changed entries are loaded and judged again. A
worker that stops or loses its connection in between has stored nothing more, and nobody waits for it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import compress, count
from typing import Any, cast

from carteiro import model
from carteiro.errors import StoreUnavailable
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, Change, Stamped
from carteiro.policy.rollups import was
from carteiro.ports.ledger import LEASED, SENT, Closed
from carteiro.stores.columns import MOST_TIMELINE, entry_of, timeline_text
from carteiro.stores.postgres.changes import Changes, Held
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.literals import few_texts, numbers, texts
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.sql import session as sql
from carteiro.stores.sql.ledger import Asked, Judged, Told, closings, ends, left_of, merged, starts

# An application requested a change by SQL, committed before this attempt: it comes first.
_TO_BE_APPLIED = model.Refused(model.RefusedWhy.NOT_DUE, timedelta(seconds=1))
_MOST_ROUNDS = 20  # others keep changing them: let the caller try again
_FIRST_BEGUN = model.Begun(1)
_SENT = model.Settled(model.State.SENT)


def held_of(row: Any) -> Held:  # noqa: ANN401 - a row
    """An entry with its job, from the columns of `load_entries`."""
    number, version, claim, parked_until, is_leased, is_requested, position, length, *columns = row
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
        last_position=position,
        timeline_length=length,
        expires_at=entry.expires_at if entry.finished_at is None else None,
        was=was(entry),
    )


class PostgresEntries:
    """See `carteiro.stores.sql.ledger.Entries`."""

    def __init__(self, db: Database, options: PostgresOptions) -> None:
        self._db = db
        self._ttl_ms = options.dead_letter_ttl_ms
        self._has_queue = options.has_queue

    async def load(
        self, session: sql.Session, ids: Sequence[model.MessageId]
    ) -> dict[model.MessageId, Held]:
        """Return the entries of these ids; unknown ones are left out."""
        rows = await session.fetch("load_entries", ids=list(dict.fromkeys(ids)))
        return {held.id: held for held in map(held_of, rows)}

    async def save(
        self, session: sql.Session, changed: Sequence[tuple[Held, Change]], now: int
    ) -> tuple[int, bool]:
        """Store changes of entries that nobody else changed; return their number, and True if there may be work now."""
        changes = Changes(now)
        for held, change in changed:
            changes.apply(held, change if self._has_queue else without_jobs(change))
        stored, has_work = await changes.save(cast("Session", session))
        return len(stored), has_work

    async def declare(
        self, asked: Sequence[model.Start], told: Sequence[Told] | None = None
    ) -> list[Any]:
        """Declare attempts: the first ones of messages by lists, the others by the rules.

        ``told``: the answers of a separate queue, which has the jobs.
        """
        # All of them have the same hold, except where kinds differ.
        can_be_first = [not start.open_attempt and start.hold == asked[0].hold for start in asked]
        is_usual = _once(asked, can_be_first, told)
        usual = list(compress(asked, is_usual))
        left = await self._declare_first(usual, await self._db.now()) if usual else ()
        is_done = _without(is_usual, left)
        judged = starts(left_of(asked, is_done), told and left_of(told, is_done))
        answers, _ = await self.write(judged, declares=True)
        return merged(_FIRST_BEGUN, is_done, answers)

    async def _declare_first(self, asked: Sequence[model.Start], now: int) -> list[int]:
        """Store first attempts; return the items (1, 2, …) that need a rule."""
        groups, places = _grouped(
            [(start.lease.claim, start.provider, start.events) for start in asked]
        )
        claims, providers, told = zip(*groups, strict=True)
        left: list[int] = await self._db.value(
            "declare_first",
            texts([start.lease.job for start in asked]),
            numbers(places),
            texts(claims),
            texts(providers),
            now + asked[0].hold // MILLISECOND,
            texts([_first_timeline(*each, now) for each in zip(providers, told, strict=True)]),
            self._has_queue,
            now,
        )
        return left

    async def settle(
        self, asked: Sequence[model.End]
    ) -> tuple[list[model.Settled | model.Late], bool]:
        """Settle attempts: sent messages by lists, the others by the rules. True: there may be work now."""
        is_done, has_freed = await self._store_sent(asked)
        answers, has_work = await self.write(ends(left_of(asked, is_done)))
        return merged(_SENT, is_done, answers), has_work or has_freed

    async def close(self, asked: Sequence[model.End], told: Sequence[Told]) -> list[Closed | None]:
        """As `settle`, where a separate queue has the jobs."""
        is_done, _ = await self._store_sent(asked, told)
        judged = closings(left_of(asked, is_done), left_of(told, is_done))
        answers, _ = await self.write(judged)
        return merged(SENT, is_done, answers)

    async def _store_sent(
        self, asked: Sequence[model.End], told: Sequence[Told] | None = None
    ) -> tuple[Sequence[bool], bool]:
        """Store those that are plainly sent; return which they are, and True if there may be work now."""
        is_sent = [
            end.verdict.__class__ is model.Sent and not (end.events or end.in_doubt)
            for end in asked
        ]
        is_usual = _once(asked, is_sent, told)
        usual = list(compress(asked, is_usual))
        left, has_freed = await self._settle_sent(usual) if usual else ((), False)
        return _without(is_usual, left), has_freed

    async def _settle_sent(self, asked: Sequence[Any]) -> tuple[list[int], bool]:
        """Store sent messages; return the items (1, 2, …) that need a rule, and True if there may be work now."""
        groups, places = _grouped(
            [(end.lease.claim, end.verdict.provider, end.attempted) for end in asked]
        )
        claims, providers, attempted = zip(*groups, strict=True)
        left, has_work = await self._db.first(
            "settle_sent",
            texts([end.lease.job for end in asked]),
            numbers(places),
            numbers([end.duration // MILLISECOND for end in asked]),
            few_texts([end.verdict.provider_id or None for end in asked]),
            texts(claims),
            texts(providers),
            numbers([int(each) for each in attempted]),
            MOST_TIMELINE,
            LONGEST_HOLD_MS,
            self._has_queue,
            await self._db.now(),
        )
        return left, has_work

    async def write(
        self, asked: Sequence[Asked], *, declares: bool = False
    ) -> tuple[list[Any], bool]:
        """Judge and store until every item has its answer; entries that others changed are judged again."""
        answers: dict[int, Any] = {}
        found: dict[model.MessageId, Held] = {}
        has_work = False
        for _ in range(_MOST_ROUNDS):
            left = _without_twins(asked, answers)
            if not left:
                return [answers[place] for place in range(len(asked))], has_work
            found = await self.load(self._db, [asked[place].id for place in left])
            judged, changes = self._judge(asked, left, found, await self._db.now(), declares)
            stored, may_work = await changes.save(self._db, dead_letter_ttl_ms=self._ttl_ms)
            has_work |= may_work
            for place, result, item in judged:
                if item is None or item in stored:
                    answers[place] = result.answer
        raise StoreUnavailable("The messages change faster than they can be stored: try again")

    def _judge(
        self,
        asked: Sequence[Asked],
        places: Sequence[int],
        found: Mapping[model.MessageId, Held],
        now: int,
        declares: bool,  # noqa: FBT001 - as asked of `write`
    ) -> tuple[list[tuple[int, Judged, int | None]], Changes]:
        """Return the judgements, each with its position, and its item if there is something to store; and the items."""
        changes = Changes(now)
        judged: list[tuple[int, Judged, int | None]] = []
        for place in places:
            held = found.get(asked[place].id)
            result = asked[place].judge(held, now)
            if held is None or result.change is None:
                judged.append((place, result, None))
            elif declares and held.is_requested:
                judged.append((place, Judged(_TO_BE_APPLIED), None))
            else:
                judged.append((place, result, len(changes.held)))
                change = result.change if self._has_queue else without_jobs(result.change)
                hold = held.entry.held_until if declares and self._has_queue else None
                changes.apply(held, change, owner=result.owner, hold=hold)
        return judged, changes


def _grouped(said: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Group equal neighbours: each group once, and for each item the number (1, 2, …) of its group."""
    groups: list[tuple[Any, ...]] = []
    places: list[int] = []
    last, number = None, 0
    for each in said:
        if each != last:
            groups.append(each)
            last, number = each, number + 1
        places += (number,)
    return groups, places


def _first_timeline(provider: str, told: Sequence[model.Event], now: int) -> str:
    events = [Stamped(each.type, each.metadata, now - each.ago // MILLISECOND) for each in told]
    attempt = {"attempt": 1, "provider": provider}
    return timeline_text([*events, Stamped(model.EventType.SENT_ATTEMPT, attempt, now)])


def _once(
    asked: Sequence[model.Start | model.End], is_usual: list[bool], told: Sequence[Told] | None
) -> list[bool]:
    """Which are usual; none if a message is named twice: the second is judged after the first is stored.

    With a separate queue, only those whose lease cannot have expired.
    """
    if len({each.lease.job for each in asked}) < len(asked):
        return [False] * len(asked)
    if told is not None:
        return [usual and said == LEASED for usual, said in zip(is_usual, told, strict=True)]
    return is_usual


def _without(is_usual: list[bool], left: Collection[int]) -> list[bool]:
    """Which are usual, but for those with these numbers (1, 2, …) among the usual ones."""
    if not left:
        return is_usual
    numbers, left = count(1), set(left)
    return [usual and next(numbers) not in left for usual in is_usual]


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
