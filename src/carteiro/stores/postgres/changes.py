"""Changed entries on their way to the server: each is stored only if nobody else changed it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import orjson

from carteiro.model import ClaimId, MessageId, State
from carteiro.policy.lifecycle import Change, Entry, Stamped
from carteiro.stores.columns import entry_row, failure_text
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.literals import numbers, texts

_LEAVE, _DROP, _PARK, _HOLD = range(4)
_TEXT_COLUMNS = frozenset({0, 8, 11, 12, 13, 14})  # of `entry_row`; the others are numbers

Stored: TypeAlias = tuple[set[int], bool]


class Held(NamedTuple):
    """An entry with its job; ``entry`` None: the queue knows it, the ledger does not."""

    id: MessageId
    message_no: int
    version: int
    kind: str
    tenant: str
    entry: Entry | None
    claim: ClaimId | None = None
    parked_until: int | None = None
    is_leased: bool = False
    is_remembered: bool = False  # as of the claim or the last store, not of now
    is_requested: bool = (
        False  # an application requested a change, to be applied before the next attempt
    )
    request: int | None = None  # the requested change that this applies


class _Item(NamedTuple):
    """One change, and its position in the batch."""

    place: int
    held: Held
    entry: Entry
    change: Change
    job: int
    until: int | None

    @property
    def claim(self) -> ClaimId | None:
        return self.held.claim if self.held.is_leased else None


@dataclass
class Changes:
    """The changes to store."""

    now: int
    held: list[Held] = field(default_factory=list)
    _begun: list[_Item] = field(default_factory=list)
    _sent: list[_Item] = field(default_factory=list)
    _others: list[_Item] = field(default_factory=list)
    _needs_ring: bool = False

    def apply(
        self, held: Held, change: Change, *, owner: bool = False, hold: int | None = None
    ) -> None:
        """Add a rule's change; ``owner``: the caller has the job; ``hold``: the end of its hold."""
        entry = held.entry
        if entry is None:  # rules only change what the ledger has
            return
        job, until = _job_of(change, hold)
        item = _Item(len(self.held), held, entry, change, job, until)
        self.held.append(held)
        if owner and job == _HOLD:
            self._begun.append(item)
        elif owner and _is_just_sent(entry, change):
            self._sent.append(item)
        else:
            self._others.append(item)
            self._needs_ring |= job in {_DROP, _PARK} and not owner

    async def save(self, session: Session | Database, *, dead_letter_ttl_ms: int = 0) -> Stored:
        """Store changes of unchanged entries; return their positions in `held`, and True if there may be work now."""
        stored: set[int] = set()
        has_work = False
        for some in (self._begun, self._sent, self._others):
            some.sort(
                key=_number
            )  # one order for all: two processes with the same entries cannot deadlock
        if self._begun:
            items = await session.value("begin", *_usual(self._begun), *_events(self._begun))
            stored |= _places(self._begun, items)
        if self._sent:
            has_jobs = any(item.job == _DROP for item in self._sent)
            items, may_work = await session.first(
                "settle_sent", *_sent(self._sent), has_jobs, self.now
            )
            stored |= _places(self._sent, items)
            has_work |= may_work
        if self._others:
            rest: list[object] = [self._needs_ring, dead_letter_ttl_ms, self.now]
            requests = [each.held.request for each in self._others]
            is_requested = any(requests)
            rest += [requests] * is_requested
            operation = "requests_apply" if is_requested else "save"
            items, may_work = await session.first(operation, *_general(self._others), *rest)
            stored |= _places(self._others, items)
            has_work |= may_work
        return stored, has_work


def _number(item: _Item) -> int:
    return item.held.message_no


def _job_of(change: Change, hold: int | None) -> tuple[int, int | None]:
    if change.drop_job:
        return _DROP, None
    if change.park_until is not None:
        return _PARK, change.park_until
    return (_LEAVE, None) if hold is None else (_HOLD, hold)


def _is_just_sent(entry: Entry, change: Change) -> bool:
    is_plain = change.buried is None and not change.unburied and entry.evidence is None
    return is_plain and entry.state is State.SENT and bool(change.events)


def _places(items: Sequence[_Item], stored: Iterable[int]) -> set[int]:
    return {items[item - 1].place for item in stored}


# --- as the statements take them -----------------------------------------------------------------


def _usual(items: Sequence[_Item]) -> tuple[str, ...]:
    return (
        numbers([each.held.message_no for each in items]),
        numbers([each.held.version for each in items]),
        texts([each.claim for each in items]),
        numbers([each.entry.attempts for each in items]),
        numbers([each.entry.in_doubt for each in items]),
        numbers([each.until for each in items]),
        texts([each.entry.provider for each in items]),
    )


def _sent(items: Sequence[_Item]) -> tuple[str, ...]:
    number, version, _, *rest, _, providers = _usual(items)
    claims = texts([each.entry.holder for each in items])
    durations = numbers([each.entry.duration_ms for each in items])
    ids = texts([each.entry.provider_id for each in items])
    return (number, version, claims, *rest, durations, providers, ids, *_events(items))


def _events(items: Sequence[_Item]) -> tuple[str, ...]:
    told: list[tuple[int, Stamped]] = [
        (item, event) for item, each in enumerate(items, 1) for event in each.change.events
    ]
    return (
        numbers([item for item, _ in told]),
        texts([event.type for _, event in told]),
        texts([orjson.dumps(event.metadata).decode() for _, event in told]),
        numbers([event.at for _, event in told]),
    )


def _general(items: Sequence[_Item]) -> tuple[str, ...]:
    return (
        numbers([each.held.message_no for each in items]),
        numbers([each.held.version for each in items]),
        texts([each.claim for each in items]),
        texts([each.held.kind for each in items]),
        texts([each.held.tenant for each in items]),
        *_rows(items),
        numbers([each.job for each in items]),
        numbers([each.until for each in items]),
        *_events(items),
        *_buried(items),
        numbers([item for item, each in enumerate(items, 1) if each.change.unburied]),
    )


def _rows(items: Sequence[_Item]) -> list[str]:
    columns = zip(*(entry_row(each.entry) for each in items), strict=True)
    return [
        texts(column) if place in _TEXT_COLUMNS else numbers(column)
        for place, column in enumerate(columns)
    ]


def _buried(items: Sequence[_Item]) -> tuple[str, ...]:
    dead = [
        (item, each.change.buried)
        for item, each in enumerate(items, 1)
        if each.change.buried is not None
    ]
    return (
        numbers([item for item, _ in dead]),
        texts([letter.reason for _, letter in dead]),
        texts([letter.failure.code for _, letter in dead]),
        texts([letter.failure.category for _, letter in dead]),
        texts([failure_text(letter.failure) for _, letter in dead]),
        numbers([letter.failed_attempts for _, letter in dead]),
    )
