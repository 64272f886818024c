"""Changed entries on their way to the server: each is stored only if nobody else changed it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import orjson

from carteiro.model import ClaimId, MessageId
from carteiro.policy.lifecycle import Change, Entry, Stamped
from carteiro.policy.rollups import Was, changed
from carteiro.stores.columns import MOST_TIMELINE, entry_row, failure_text, timeline_text
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.literals import numbers, texts

_LEAVE, _DROP, _PARK, _HOLD = range(4)
_TEXT_COLUMNS = frozenset({0, 8, 11, 12, 13, 14, 17})  # of `entry_row`; the others are numbers

Stored: TypeAlias = tuple[set[int], bool]


class Held(NamedTuple):
    """An entry with its job; ``version`` 0: nothing has happened to the message."""

    id: MessageId
    message_no: int
    version: int
    kind: str
    tenant: str
    entry: Entry
    claim: ClaimId | None = None
    parked_until: int | None = None
    is_leased: bool = False
    # An application requested a change, to be applied before the next attempt.
    is_requested: bool = False
    last_position: int | None = None  # of its events, if some are rows of their own
    timeline_length: int | None = None
    expires_at: int | None = None  # None: it is finished
    was: Was | None = None  # the entry before the change
    request: int | None = None  # the requested change that this applies


class _Item(NamedTuple):
    """One change, and its position in the batch."""

    place: int
    held: Held
    change: Change
    job: int
    until: int | None

    @property
    def claim(self) -> ClaimId | None:
        return self.held.claim if self.held.is_leased else None

    @property
    def is_long(self) -> bool:
        return bool(self.held.last_position) or (self.held.timeline_length or 0) >= MOST_TIMELINE


@dataclass
class Changes:
    """The changes to store."""

    now: int
    held: list[Held] = field(default_factory=list)
    _items: list[_Item] = field(default_factory=list)
    _needs_ring: bool = False

    def apply(
        self, held: Held, change: Change, *, owner: bool = False, hold: int | None = None
    ) -> None:
        """Add a rule's change; ``owner``: the caller has the job; ``hold``: the end of its hold."""
        job, until = _job_of(change, hold)
        self._items.append(_Item(len(self.held), held, change, job, until))
        self.held.append(held)
        self._needs_ring |= job in {_DROP, _PARK} and not owner

    async def save(self, session: Session | Database, *, dead_letter_ttl_ms: int = 0) -> Stored:
        """Store changes of unchanged entries; return their positions in `held`, and True if there may be work now."""
        if not self._items:
            return set(), False
        # One order for all: two processes with the same entries cannot deadlock.
        items = sorted(self._items, key=lambda item: item.held.message_no)
        requests = [each.held.request for each in items]
        is_requested = any(requests)
        stored, has_work = await session.first(
            "requests_apply" if is_requested else "save",
            *_parameters(items, self.now),
            *(self._needs_ring, dead_letter_ttl_ms, self.now),
            *([requests] if is_requested else []),
        )
        return {items[item - 1].place for item in stored}, has_work


def _job_of(change: Change, hold: int | None) -> tuple[int, int | None]:
    if change.drop_job:
        return _DROP, None
    if change.park_until is not None:
        return _PARK, change.park_until
    return (_LEAVE, None) if hold is None else (_HOLD, hold)


# --- as the statements take them -----------------------------------------------------------------


def _parameters(items: Sequence[_Item], now: int) -> tuple[str, ...]:
    return (
        numbers([each.held.message_no for each in items]),
        numbers([each.held.version for each in items]),
        texts([each.claim for each in items]),
        texts([each.held.kind for each in items]),
        texts([each.held.tenant for each in items]),
        numbers([each.held.expires_at for each in items]),
        *_rows(items),
        texts(["" if each.is_long else timeline_text(each.change.events) for each in items]),
        numbers([each.job for each in items]),
        numbers([each.until for each in items]),
        *_events(items),
        *_buried(items),
        numbers([item for item, each in enumerate(items, 1) if each.change.unburied]),
        texts([_noted(each, now) for each in items]),
    )


def _noted(item: _Item, now: int) -> str | None:
    """Figures of the change."""
    figures = item.held.was and changed(item.held.was, item.held.entry, item.change, now)
    return orjson.dumps(figures).decode() if figures else None


def _events(items: Sequence[_Item]) -> tuple[str, ...]:
    """Events that their timelines have no room for."""
    told: list[tuple[int, int, Stamped]] = [
        (item, position, event)
        for item, each in enumerate(items, 1)
        if each.is_long
        for position, event in enumerate(each.change.events, 1 + (each.held.last_position or 0))
    ]
    return (
        numbers([item for item, _, _ in told]),
        numbers([position for _, position, _ in told]),
        texts([event.type for _, _, event in told]),
        texts([orjson.dumps(event.metadata).decode() for _, _, event in told]),
        numbers([event.at for _, _, event in told]),
    )


def _rows(items: Sequence[_Item]) -> list[str]:
    columns = zip(*(entry_row(each.held.entry) for each in items), strict=True)
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
        texts([letter.group for _, letter in dead]),
        texts([letter.waits_for for _, letter in dead]),
    )
