"""Conversion between columns and values for every SQL store."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson

from carteiro import model
from carteiro.model.alerts import Alert, Silence
from carteiro.policy.lifecycle import Entry, Stamped
from carteiro.policy.rollups import DELAYS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Made = TypeVar("Made", bound="DataclassInstance")

FAR = 2**62  # an alarm that never rings
# Characters of a timeline in its entry: once it is longer, events are rows of their own.
MOST_TIMELINE = 8192
# A look-up costs less than State(…).
_STATES: Mapping[str, model.State] = {state.value: state for state in model.State}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MOST_FAILURES = 1024  # few different values, each used often

# Columns of an accepted message; those that most messages leave empty come last.
_ACCEPTED = (
    *("id", "tenant", "kind", "declares", "delivery", "priority", "ttl_ms", "request_id"),
    *("external_id", "recipient_id", "to_address", "subject", "template_type", "tags"),
)
_OPTIONAL = _ACCEPTED[_ACCEPTED.index("external_id") :]
_TYPES = {"declares": "boolean", "priority": "integer", "ttl_ms": "bigint"}  # the others: text
_ENTRY = [each.name for each in fields(Entry)]
_CHANGEABLE = _ENTRY[_ENTRY.index("state") :]
_FAILURE = _CHANGEABLE.index("failure")
_changeable = attrgetter(*_CHANGEABLE)
_MESSAGE = [each.name for each in fields(model.StoredMessage)]
_CONTENT = _MESSAGE.index("content")
_COLUMNS = {"to": "to_address", "provider_id": "provider_message_id", "duration": "duration_ms"}
_AUDIT = [each.name for each in fields(model.AuditRow)]
_AUDIT_NAMES = ("who", "action", "kind", "object", "tenant")


def _accepted(form: str) -> str:
    return ", ".join(form.format(name, _TYPES.get(name, "text")) for name in _ACCEPTED)


# Lists of columns, by the word that stands for them in statements and functions, as in ``{accepted}``.
LISTS = {
    "accepted": _accepted("{0}"),
    "accepted_items": _accepted("p_{0}[i]"),
    "accepted_parameters": _accepted("p_{0} {1}[] DEFAULT '{{}}'"),
    "accepted_given": _accepted(":{0}::text::{1}[]"),
    # 0 stands for NULL: for each None sqlite3 looks for an adapter, which takes longer than all else about it.
    "accepted_values": ", ".join(
        "nullif(?, 0)" if each in _OPTIONAL else "?" for each in _ACCEPTED
    ),
    "delays": ", ".join(map(str, DELAYS)),
    "audit": ", ".join(_AUDIT),
    "failure_group": ", ".join(each.name for each in fields(model.FailureGroup)),
    # Like this, the same text is right in every dialect, and a filter that is not given needs no statement of its own.
    "audit_wanted": "at >= :since AND "
    + " AND ".join(f"{each} = coalesce(:{each}, {each})" for each in _AUDIT_NAMES),
    "alert": ", ".join(each.name for each in fields(Alert)),
    "silence": ", ".join(each.name for each in fields(Silence)),
    "redrive": "id, tenant, wanted, requester, state, reason, ramp, course, total, started_at, changed_at, version,"
    " provider",
    "shown": ", ".join(f"m.{_COLUMNS.get(name, name)}" for name in _MESSAGE if name != "content"),
}


def in_ms(moment: datetime) -> int:
    """Milliseconds since 1970, rounded up: nothing is due before its time."""
    return -((_EPOCH - moment) // model.MILLISECOND)


def moment(ms: int) -> datetime:
    """The moment of this number of milliseconds since 1970."""
    return _EPOCH + ms * model.MILLISECOND


def maybe_moment(ms: int | None) -> datetime | None:
    """The moment, if there is one."""
    return None if ms is None else moment(ms)


@lru_cache(_MOST_FAILURES)
def failure_text(failure: model.Failure | None) -> str | None:
    """A failure as it is stored."""
    if failure is None:
        return None
    return orjson.dumps(failure).decode()


@lru_cache(_MOST_FAILURES)
def failure_of(text: str | None) -> model.Failure | None:
    """A failure as it was stored."""
    if text is None:
        return None
    stored = orjson.loads(text)
    category, scope = model.Category(stored.pop("category")), model.Scope(stored.pop("scope"))
    return model.Failure(category=category, scope=scope, **stored)


def timeline_text(events: Iterable[Stamped]) -> str:
    """Events as an entry keeps them: JSON documents, each followed by a comma."""
    told = [(event.type, event.at, event.metadata) for event in events]
    return f"{orjson.dumps(told)[1:-1].decode()}," if told else ""


def entry_of(row: Sequence[Any]) -> Entry:
    """A ledger entry from its columns, in the order of `Entry`."""
    entry = Entry(*row)
    entry.state = _STATES[entry.state]
    entry.declares = bool(entry.declares)
    if entry.failure is not None:
        entry.failure = failure_of(cast("str", entry.failure))
    return entry


def entry_row(entry: Entry) -> list[object]:
    """The columns that rules change, in the order of `Entry`."""
    row = [*_changeable(entry)]
    row[_FAILURE] = failure_text(entry.failure)
    return row


def message_of(row: Sequence[Any]) -> model.StoredMessage:
    """A message from the columns of ``{shown}``, and its content."""
    *shown, content = row
    return made(model.StoredMessage, [*shown[:_CONTENT], content, *shown[_CONTENT:]])


def recipient_of(row: Sequence[Any]) -> model.Recipient:
    """A recipient from its nine columns."""
    return made(model.Recipient, row)


def made(shape: type[Made], row: Sequence[Any]) -> Made:
    """A value from its columns, in the order of its fields."""
    values = [*row]
    for place, read in _readers(shape):
        values[place] = read(values[place])
    return shape(*values)


@cache
def _readers(shape: type["DataclassInstance"]) -> list[tuple[int, Callable[[Any], object]]]:
    """The fields that are not stored as they are, by their places."""
    hints = get_type_hints(shape)
    found = [(place, _reader(hints[each.name])) for place, each in enumerate(fields(shape))]
    return [(place, read) for place, read in found if read is not None]


def _reader(hint: object) -> Callable[[Any], object] | None:
    for each in (hint, get_origin(hint), *get_args(hint)):
        if isinstance(each, type) and (issubclass(each, Enum) or each in _READERS):
            read = _READERS.get(each, each)
            if each not in _READERS and NoneType in get_args(hint):
                return lambda stored: None if stored is None else read(stored)
            return read
    return None


_READERS: Mapping[type, Callable[[Any], object]] = {
    bool: bool,
    datetime: maybe_moment,
    timedelta: lambda ms: None if ms is None else ms * model.MILLISECOND,
    tuple: lambda text: tuple(orjson.loads(text or "[]")),
    model.Failure: failure_of,
    model.ApiLimits: lambda text: None if text is None else model.ApiLimits(*orjson.loads(text)),
}
