"""The document of a dead ticket: one for each ticket, however often it dies.

Pure. The ticket's own fields stand at the top as they did on the topic, with ``dlq_metadata`` and
``processed_at`` next to them; all that is ours stands under ``archive``. What a document cannot hold as
fields it holds as bytes, and what it cannot hold at all it points to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias, get_args

import orjson

from carteiro.model import value
from carteiro.tickets.dead_letters import envelope
from carteiro.tickets.json_members import is_exact, with_members
from carteiro.tickets.ticket import TaskType, TicketId

ArchiveState: TypeAlias = Literal[
    "dead",  # it waits for people
    "acknowledged",  # somebody has seen it, and it needs no alert
    "redriving",  # a run is sending it
    "redriven",  # it is on its topic again
    "done",  # and has succeeded there
    "quarantined",  # it is not to be sent
]
GroupBy: TypeAlias = Literal["error_type", "task_type", "reason", "state"]
Document: TypeAlias = dict[str, Any]

STATES: tuple[ArchiveState, ...] = get_args(ArchiveState)
WAITING: tuple[ArchiveState, ...] = ("dead", "redriving")  # for people: a run may have been killed
UNSETTLED: tuple[ArchiveState, ...] = ("dead", "acknowledged", "redriving", "quarantined")
OURS = "archive"
RESERVED = frozenset({"_id", OURS, "processed_at", "dlq_metadata"})
PAYLOAD_BYTES, PAYLOAD_SHA256 = "payload_bytes", "payload_sha256"  # of what is not kept here
MOST_OCCURRENCES = 50  # the newest; how many there were in all is counted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_ERROR_AGAIN = 300  # in the list of occurrences


@value
class Wanted:
    """Which archived tickets; what is None does not matter. Moments are those of ``processed_at``."""

    ids: tuple[TicketId, ...] | None = None
    type: TaskType | None = None
    error_type: str | None = None
    reason: str | None = None
    states: tuple[ArchiveState, ...] | None = None
    since: datetime | None = None
    before: datetime | None = None


@value
class Kept:
    """The number of tickets of one state, type and error."""

    state: ArchiveState
    type: TaskType
    error_type: str
    count: int


@value
class Step:
    """Something that was done with archived tickets: by whom, when and why. It goes into their history."""

    what: str
    by: str
    why: str
    at: datetime
    run: str = ""

    def as_document(self) -> Document:
        """The entry in the history."""
        entry = {"at": self.at, "what": self.what, "by": self.by, "why": self.why, "run": self.run}
        return {name: each for name, each in entry.items() if each != ""}


@value
class Archived:
    """A dead ticket as the archive has it; ``version`` is None in what something else put there.

    With ``fields`` there are ``raw`` bytes only where the fields alone do not say all of its numbers.
    ``missing``: there are neither, since the payload was too large; it is where ``source`` says, for a while.
    """

    id: TicketId
    type: TaskType
    state: ArchiveState
    reason: str
    metadata: Mapping[str, Any]
    processed_at: datetime
    published_at: datetime
    source: str
    redrives: int
    deaths: int
    run: str
    run_at: datetime | None
    occurrences: tuple[Mapping[str, Any], ...]
    history: tuple[Mapping[str, Any], ...]
    headers: envelope.Headers
    fields: Mapping[str, Any] | None
    raw: bytes | None
    version: int | None
    missing: envelope.Missing | None = None

    @property
    def error_type(self) -> str:
        """The kind of the last failure."""
        return str(self.metadata.get("error_type") or "")

    @property
    def error(self) -> str:
        """The text of the last failure."""
        return str(self.metadata.get("original_error") or "")

    @property
    def failures(self) -> int:
        """The number of attempts before its last death."""
        return _whole(self.metadata.get("retry_count"))


def ends_with(ticket: Archived, done: envelope.Done) -> bool:
    """Return True if this success is of the ticket as it stands, not of a redrive before its last death."""
    if ticket.state == "redriven":
        return done.redrives >= ticket.redrives
    return ticket.state in {*WAITING, "acknowledged"} and done.redrives > ticket.redrives


# --- writing ----------------------------------------------------------------------------------


def is_noted(before: Mapping[str, Any], dead: envelope.DeadTicket) -> bool:
    """Return True if this very death is in the document already: it was read from the topic twice."""
    known = before.get(OURS, {}).get("occurrences", ())
    return any(each.get("dlq_id") == dead.dlq_id for each in known)


def documents(
    before: Mapping[str, Any], dead: envelope.DeadTicket, *, now: datetime
) -> Iterator[Document]:
    """The document after one more death, in every form it can have: the fullest first.

    ``before`` is what there was, of which only `OURS` matters. A quarantined ticket stays so; any other is dead
    again, whatever was being done with it.
    """
    ours = _ours(before.get(OURS, {}), dead, now)
    names = {"ticket_id": dead.id, "task_type": dead.type}
    ends = {"dlq_metadata": dict(dead.metadata), "processed_at": now}
    raw = _as_it_came(dead)
    if dead.fields is not None and RESERVED.isdisjoint(dead.fields) and dumped(dead.fields):
        beside = {} if raw is None or is_exact(raw) else {"raw": raw}
        yield {**dead.fields} | names | ends | {OURS: ours | {"kept": "fields"} | beside}
    if raw is not None:
        yield names | ends | {OURS: ours | {"kept": "bytes", "raw": raw}}
    yield (
        names
        | ends
        | {
            OURS: ours
            | _pointer(dead.missing or (None if raw is None else envelope.Missing.of(raw)))
        }
    )


def bare(dead: envelope.DeadTicket) -> envelope.DeadTicket:
    """The same with nothing understood of its payload: the bytes of its dead letter are what there is."""
    return replace(dead, fields=None, raw=dead.record.body)


def dumped(fields: Mapping[str, Any]) -> bytes | None:
    """Fields as JSON; None where they are nested deeper than can be written, though they could be read."""
    try:
        return orjson.dumps(dict(fields), default=str)
    except orjson.JSONEncodeError:
        return None


def _as_it_came(dead: envelope.DeadTicket) -> bytes | None:
    """The ticket's own bytes: fields that are written again may have lost digits."""
    if dead.fields is None or dead.record.body is None:
        return dead.raw
    return with_members(dead.record.body, {}, without=envelope.METADATA)


def _ours(before: Mapping[str, Any], dead: envelope.DeadTicket, now: datetime) -> Document:
    return {
        "state": "quarantined" if before.get("state") == "quarantined" else "dead",
        "reason": dead.reason,
        "dlq_id": dead.dlq_id,
        "source": dead.source,
        "redrives": dead.redrives,
        "headers": [{"name": name, "value": said} for name, said in envelope.carried(dead.record)],
        "published_at": _published(dead, now),
        "first_seen_at": before.get("first_seen_at", now),
        "deaths": _whole(before.get("deaths")) + 1,
        "occurrences": [*before.get("occurrences", ()), _occurrence(dead, now)][-MOST_OCCURRENCES:],
        "history": [*before.get("history", ())],
        "version": _whole(before.get("version")) + 1,
    }


def _occurrence(dead: envelope.DeadTicket, now: datetime) -> Document:
    return {
        "dlq_id": dead.dlq_id,
        "source": dead.source,
        "dlq_place": dead.record.place,
        "reason": dead.reason,
        "error_type": dead.metadata["error_type"],
        "original_error": dead.metadata["original_error"][:_LONGEST_ERROR_AGAIN],
        "retry_count": dead.metadata["retry_count"],
        "redrives": dead.redrives,
        "published_at": _published(dead, now),
        "processed_at": now,
    }


def _pointer(missing: envelope.Missing | None) -> Document:
    if missing is None:
        return {"kept": "nothing"}
    told = {PAYLOAD_BYTES: missing.size_bytes, PAYLOAD_SHA256: missing.sha256}
    return {"kept": "nothing"} | told


def _published(dead: envelope.DeadTicket, now: datetime) -> datetime:
    """When it was dead-lettered, as a date: numbers are not found by a date, nor expire."""
    at_ms = dead.metadata["dlq_published_at"]
    try:
        return _EPOCH + timedelta(milliseconds=at_ms) if at_ms else now
    except OverflowError:  # others may write any time on a record
        return now


def _whole(number: object) -> int:
    """A number that fits into a document, 0 for anything else."""
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) >= 1 << 63:
        return 0
    return number


# --- reading ----------------------------------------------------------------------------------


def restored(document: Mapping[str, Any]) -> Archived:
    """A document as a value; what others put into the collection is read as far as it goes."""
    ours = document.get(OURS)
    ours = ours if isinstance(ours, Mapping) else {}
    metadata = document.get("dlq_metadata")
    has_fields = ours.get("kept", "fields") == "fields"
    processed_at = _moment(document.get("processed_at")) or _EPOCH
    return Archived(
        id=str(document.get("ticket_id") or ""),
        type=str(document.get("task_type") or ""),
        state=state_of(ours.get("state")),
        reason=str(ours.get("reason") or ""),
        metadata=metadata if isinstance(metadata, Mapping) else {},
        processed_at=processed_at,
        published_at=_moment(ours.get("published_at")) or processed_at,
        source=str(ours.get("source") or ""),
        redrives=_whole(ours.get("redrives")),
        deaths=_whole(ours.get("deaths")) or 1,
        run=str(ours.get("run") or ""),
        run_at=_moment(ours.get("run_at")),
        occurrences=tuple(ours.get("occurrences") or ()),
        history=tuple(ours.get("history") or ()),
        headers=tuple((each["name"], _bytes(each["value"])) for each in ours.get("headers") or ()),
        fields=_fields_of(document) if has_fields else None,
        raw=_bytes(ours.get("raw")),
        version=ours.get("version"),
        missing=_found_missing(ours),
    )


def _found_missing(ours: Mapping[str, Any]) -> envelope.Missing | None:
    if PAYLOAD_BYTES not in ours:
        return None
    return envelope.Missing(_whole(ours[PAYLOAD_BYTES]), str(ours.get(PAYLOAD_SHA256) or ""))


def state_of(found: object) -> ArchiveState:
    """A state as it was written; what something else archived has none: it is dead."""
    return next((each for each in STATES if each == found), "dead")


def _fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in document.items() if name not in RESERVED}


def _bytes(found: bytes | None) -> bytes | None:
    return None if found is None else bytes(found)


def _moment(found: object) -> datetime | None:
    return found if isinstance(found, datetime) else None
