"""Records of the topic, and the tickets in them.

Pure. Whatever the bytes are, reading them ends in a ticket or in a reason why there is none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import repeat
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard

import orjson

from carteiro.model import value

TicketId: TypeAlias = str
TaskType: TypeAlias = str
Part: TypeAlias = tuple[str, int]  # topic and number of a partition
Reason: TypeAlias = Literal[
    "max_retries_exceeded", "permanent_error", "unknown_task_type", "undecodable", "oversized"
]

LONGEST_ID = 256
_FIT = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_PLAIN = bytes(range(0x21, 0x7F))  # printable ASCII without the space
NO_TYPE: TaskType = ""
_READ_ONCE = 512  # bytes; what is longer is read again when it is needed: as objects it may take thirty times its room


class Record(NamedTuple):
    """A record of the log; ``time_ms`` is when it was written there, 0 if that is not known.

    A tuple, since a batch of tuples is made without a call of Python for each.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    body: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    time_ms: int = 0

    @property
    def place(self) -> str:
        """Its name for good, in keys and headers: no other record ever has this place."""
        return f"{self.topic}|{self.partition}|{self.offset}"


@value
class Ticket:
    """A piece of work: an object of JSON with a ``ticket_id`` and a ``task_type``.

    ``attempt`` counts from 1: one more than it has failed. After a crash the same attempt may be made again.
    """

    id: TicketId
    type: TaskType
    record: Record
    attempt: int = 1
    _fields: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def fields(self) -> Mapping[str, Any]:
        """All that it says."""
        if self._fields is None:
            self._fields = orjson.loads(self.record.body or b"")  # type: ignore[misc] # it says what it said
        return self._fields

    def put_away(self) -> None:
        """Drop its fields while it waits: they take no room, and a handler's changes to them are undone."""
        self._fields = None  # type: ignore[misc] # they are read again


@value
class Unreadable:
    """A record that is not a ticket: ``id`` is made from its place, unless it has one; ``why`` is for people."""

    id: TicketId
    type: TaskType
    why: str
    record: Record


def read_all(records: Sequence[Record]) -> Sequence[Ticket | Unreadable]:
    """The tickets of records; if all are short and plain, without a Python call for each."""
    bodies: list[Any] = [record.body for record in records]
    try:
        if max(map(len, bodies)) <= _READ_ONCE:
            fields = [*map(orjson.loads, bodies)]
            ids = [each["ticket_id"] for each in fields]
            types = [each["task_type"] for each in fields]
            if _are_plain(ids) and all(map(is_fit, set(types))):
                return [*map(Ticket, ids, types, records, repeat(1), fields)]
    except (ValueError, LookupError, TypeError):  # one of them is not a ticket
        pass
    return [*map(read, records)]


def _are_plain(ids: Sequence[str]) -> bool:
    """Return True if all are certainly fit; checked as one text, since a check of each costs as much as its JSON."""
    is_plain = not "".join(ids).encode("utf-8").translate(None, _PLAIN)
    return is_plain and all(ids) and max(map(len, ids)) <= LONGEST_ID


def read(record: Record) -> Ticket | Unreadable:
    """The ticket of a record, or why there is none."""
    if not record.body:
        nothing = "the record has no value" if record.body is None else "the record is empty"
        return _unreadable(record, nothing)
    try:
        fields = orjson.loads(record.body)
    except orjson.JSONDecodeError as error:
        return _unreadable(record, f"the value is not JSON: {error}")
    if not isinstance(fields, dict):
        return _unreadable(record, "the value is not an object of JSON")
    id, type_ = fields.get("ticket_id"), fields.get("task_type")
    if not is_fit(id):
        known = type_ if is_fit(type_) else NO_TYPE
        return _unreadable(record, f"ticket_id is {_fault(id)}", type=known)
    if not is_fit(type_):
        return Unreadable(id, NO_TYPE, f"task_type is {_fault(type_)}", record)
    return Ticket(id, type_, record, 1, fields if len(record.body) <= _READ_ONCE else None)


def is_fit(name: object) -> TypeGuard[str]:
    """Return True if it can stand in a key of Redis, in a header and in a document: a word of bounded length."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID:
        return False
    return _FIT.fullmatch(name) is not None


def _fault(name: object) -> str:
    if name is None:
        return "missing"
    if not isinstance(name, str):
        return "not a text"
    return f"empty, longer than {LONGEST_ID} characters, or has spaces or control characters in it"


def _unreadable(record: Record, why: str, *, type: TaskType = NO_TYPE) -> Unreadable:
    made = f"poison:{record.topic}:{record.partition}:{record.offset}"
    return Unreadable(made, type, why, record)
