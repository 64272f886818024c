"""A dead ticket as a record of the dead letter topic: written in the fullest form that fits, and read again.

Pure. The forms, from the fullest: the ticket with `dlq_metadata` among its own fields; the same with a short
error; without the headers that the ticket came with; the bytes as they came, with the metadata in a header;
where it lies, without its bytes. A record that is not a ticket has its bytes in the metadata. The headers
of the last death are replaced, not added to: else a ticket that is redriven again and again outgrows the topic.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, get_args

import orjson

from carteiro.model import value
from carteiro.tickets import ticket as records
from carteiro.tickets.deaths import Death
from carteiro.tickets.json_members import with_members
from carteiro.tickets.scrubbing import cut, scrubbed_start

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

TOPIC_LIMIT = 2 * 1024 * 1024  # max.message.bytes of the topic: of a batch, compressed
LIMIT = TOPIC_LIMIT - 4096  # what does not compress must fit, too, in a batch of its own
LONG_ERROR, SHORT_ERROR, SHORTEST_ERROR = 16384, 4096, 1024  # bytes
OVERSIZED: records.Reason = "oversized"  # what is said of a death whose letter has no payload
UNKNOWN_REASON = "unknown"  # of what others put into the topic

METADATA = "dlq_metadata"
DLQ_ID = "dlq_id"
REDRIVES = "carteiro_redrives"
REASON = "carteiro_reason"
TICKET_ID = "carteiro_ticket_id"
TASK_TYPE = "carteiro_task_type"
DONE = "carteiro_done"  # the header of a success after a redrive, which is not a death
_OURS = ("dlq_", "carteiro_", "__dlq.errors.", "kafka_dlt-")

_BATCH_BYTES, _HEADER_BYTES = 128, 10  # what a batch and a header cost beyond their texts, at most
_LONGEST_NAME = 256
_MOST = 2**31 - 1
_NUMBER = re.compile("[0-9]{1,19}")
_LAST_MS = 253_402_300_799_999  # the last moment that has a date of four digits


@value
class Envelope:
    """A record to be written."""

    key: bytes
    value: bytes
    headers: Headers
    is_whole: bool = True


@value
class Missing:
    """A payload that is too large to be kept with the rest: by what it is known where it still stands."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, body: bytes) -> "Missing":
        """As it is known before it is left out."""
        return cls(len(body), hashlib.sha256(body).hexdigest())


@value
class DeadTicket:
    """A record of the dead letter topic, from any writer and in any form.

    ``fields`` is None if there is no ticket, or only its place; ``raw`` are its bytes, where they are not
    what the fields say; ``missing``: they are only where ``source`` says, as TOPIC|PARTITION|OFFSET.
    ``metadata`` has what the seed names and nothing else, each of its type.
    """

    id: records.TicketId
    type: records.TaskType
    fields: Mapping[str, Any] | None
    raw: bytes | None
    metadata: Mapping[str, Any]
    reason: str
    dlq_id: str
    source: str
    redrives: int
    missing: Missing | None
    record: records.Record


# --- writing ----------------------------------------------------------------------------------


def forms(death: Death, *, published_at_ms: int, group: str) -> Iterator[Envelope]:
    """All forms, from the fullest to the shortest; each is made when it is asked for."""
    key = death.ticket.id.encode()
    error = scrubbed_start(death.error, LONG_ERROR)
    shortest_error = cut(error, SHORTEST_ERROR)
    headers = _headers(death, shortest_error, group)
    with_its_own = headers + carried(death.ticket.record)
    yield Envelope(key, _body(death, _metadata(death, error, published_at_ms)), with_its_own)
    short_body = _body(death, _metadata(death, cut(error, SHORT_ERROR), published_at_ms))
    yield Envelope(key, short_body, with_its_own)
    yield Envelope(key, short_body, headers)
    record = death.ticket.record
    shortest = _metadata(death, shortest_error, published_at_ms) | _whence(death)
    if record.body is not None:
        told = (METADATA, orjson.dumps(shortest))
        yield Envelope(key, record.body, (*headers, told))
    yield Envelope(key, _named(death, shortest | _pointer(record)), headers, is_whole=False)


def size(made: Envelope) -> int:
    """Return the most bytes it takes in a batch of its own, before it is compressed."""
    headers = sum(
        len(name.encode()) + len(said or b"") + _HEADER_BYTES for name, said in made.headers
    )
    return len(made.key) + len(made.value) + headers + _BATCH_BYTES


def dlq_id_of(place: str) -> str:
    """The same for every dead letter of one record, so that a second one is seen to be one."""
    return hashlib.sha256(place.encode()).hexdigest()


def _metadata(death: Death, error: str, published_at_ms: int) -> dict[str, Any]:
    return {
        "original_error": error,
        "error_type": _name(death.error_type),
        "retry_count": death.failures,
        "last_failure_timestamp": death.failed_at_ms,
        "dlq_published_at": published_at_ms,
    }


def _whence(death: Death) -> dict[str, Any]:
    return {"reason": death.reason, "source": death.ticket.record.place}


def _pointer(record: records.Record) -> dict[str, Any]:
    missing = Missing.of(record.body or b"")
    told = {"payload_bytes": missing.size_bytes, "payload_sha256": missing.sha256}
    return {"payload_truncated": True} | told


def _body(death: Death, metadata: dict[str, Any]) -> bytes:
    """The ticket with its metadata, or its bytes in the metadata if it is none."""
    if isinstance(death.ticket, records.Ticket):
        return _with_metadata(death.ticket, metadata)
    body = death.ticket.record.body
    told: dict[str, Any] = {"payload_base64": None}
    if body is not None:
        sha256 = Missing.of(body).sha256
        told = {"payload_base64": b64encode(body).decode(), "payload_sha256": sha256}
    return _named(death, metadata | _whence(death) | told)


def _named(death: Death, metadata: dict[str, Any]) -> bytes:
    ticket = death.ticket
    return orjson.dumps({"ticket_id": ticket.id, "task_type": ticket.type, METADATA: metadata})


def _with_metadata(ticket: records.Ticket, metadata: dict[str, Any]) -> bytes:
    """The bytes as they came with one more field: numbers keep all their digits that way."""
    body = ticket.record.body or b""
    if METADATA in ticket.fields:
        body = with_members(body, {}, without=METADATA)
    open_end = body.rstrip()[:-1]
    return b'%b,"%b":%b}' % (open_end, METADATA.encode(), orjson.dumps(metadata))


def _headers(death: Death, error: str, group: str) -> Headers:
    """Make the headers that we read again, then those of tools for share groups and for Spring."""
    ticket, record = death.ticket, death.ticket.record
    kind, said = _name(death.error_type).encode(), error.encode()
    return (
        (DLQ_ID, dlq_id_of(record.place).encode()),
        (REASON, death.reason.encode()),
        (TICKET_ID, ticket.id.encode()),
        (TASK_TYPE, ticket.type.encode()),
        (REDRIVES, str(redrives_of(record.headers)).encode()),
        ("__dlq.errors.topic", record.topic.encode()),
        ("__dlq.errors.partition", str(record.partition).encode()),
        ("__dlq.errors.offset", str(record.offset).encode()),
        ("__dlq.errors.group", group.encode()),
        ("__dlq.errors.delivery.count", str(death.failures).encode()),
        ("__dlq.errors.message", said),
        ("kafka_dlt-original-topic", record.topic.encode()),
        ("kafka_dlt-original-partition", record.partition.to_bytes(4, "big", signed=True)),
        ("kafka_dlt-original-offset", record.offset.to_bytes(8, "big", signed=True)),
        ("kafka_dlt-original-timestamp", record.time_ms.to_bytes(8, "big", signed=True)),
        ("kafka_dlt-original-consumer-group", group.encode()),
        ("kafka_dlt-exception-fqcn", kind),
        ("kafka_dlt-exception-message", said),
    )


def carried(record: records.Record) -> Headers:
    """Return the headers that a record came with, without those of a death."""
    return tuple(each for each in record.headers if not each[0].startswith(_OURS))


def _name(text: str) -> str:
    """One short line, whatever it was."""
    return " ".join(scrubbed_start(text[:_LONGEST_NAME], _LONGEST_NAME).split()) or "Error"


def done_envelope(ticket: records.Ticket | records.Unreadable, *, redrives: int) -> Envelope:
    """Report to the archive that a republished ticket is done; other readers of the topic know it by its header."""
    named = {"ticket_id": ticket.id, "task_type": ticket.type, "status": "DONE"}
    headers: Headers = (
        (DONE, b"1"),
        (TICKET_ID, ticket.id.encode()),
        (TASK_TYPE, ticket.type.encode()),
        (REDRIVES, str(redrives).encode()),
    )
    return Envelope(ticket.id.encode(), orjson.dumps(named), headers)


# --- reading ----------------------------------------------------------------------------------


@value
class Done:
    """A ticket is done, after this number of redrives."""

    id: records.TicketId
    redrives: int


def done_of(record: records.Record) -> Done | None:
    """Parse the report of a success; None: the record is a dead letter."""
    headers = dict(record.headers)
    id = _text(headers.get(TICKET_ID))
    return Done(id, redrives_of(record.headers)) if DONE in headers and records.is_fit(id) else None


class _Contents(NamedTuple):
    """The parts of a value: the object that names it, the ticket or the bytes, and the metadata of its death."""

    named: Mapping[str, Any]
    fields: Mapping[str, Any] | None
    raw: bytes | None
    metadata: Mapping[str, Any]


def opened(record: records.Record) -> DeadTicket:
    """Parse a record of the dead letter topic, from any writer."""
    headers = dict(record.headers)
    named, fields, raw, metadata = _contents(record, headers.get(METADATA))
    source = _source(headers, metadata) or record.place
    missing = _missing(metadata)
    id = _first_fit(_text(headers.get(TICKET_ID)), named.get("ticket_id"))
    return DeadTicket(
        id=id or f"poison:{record.topic}:{record.partition}:{record.offset}",
        type=_first_fit(_text(headers.get(TASK_TYPE)), named.get("task_type")) or records.NO_TYPE,
        fields=fields,
        raw=raw,
        metadata=_as_the_seed(metadata, record.time_ms),
        reason=_reason(headers, metadata, is_bytes=fields is None and missing is None),
        dlq_id=dlq_id_of(source),
        source=source,
        redrives=redrives_of(record.headers),
        missing=missing,
        record=record,
    )


def _contents(record: records.Record, in_header: bytes | None) -> _Contents:
    value = _object(record.body)
    metadata = _object(in_header)
    if metadata is not None:  # the bytes as they came
        return _as_it_came(record, metadata)
    metadata = value.get(METADATA) if value is not None else None
    if value is None or not isinstance(metadata, dict):  # not ours
        return _as_it_came(record, {})
    if "payload_base64" in metadata or metadata.get("payload_truncated") is True:
        return _Contents(value, None, _bytes(metadata.get("payload_base64")), metadata)
    return _Contents(value, _without_metadata(value), None, metadata)


def _as_it_came(record: records.Record, metadata: Mapping[str, Any]) -> _Contents:
    ticket = records.read(record)
    if isinstance(ticket, records.Unreadable):
        return _Contents(_object(record.body) or {}, None, record.body, metadata)
    return _Contents(ticket.fields, _without_metadata(ticket.fields), None, metadata)


def _missing(metadata: Mapping[str, Any]) -> Missing | None:
    if metadata.get("payload_truncated") is not True:
        return None
    sha256 = metadata.get("payload_sha256")
    size_bytes = _whole(metadata.get("payload_bytes"), _MOST) or 0
    return Missing(size_bytes, sha256 if records.is_fit(sha256) else "")


def _as_the_seed(metadata: Mapping[str, Any], time_ms: int) -> dict[str, Any]:
    """Return the metadata of a death, each of its type: others may have written anything."""
    error, kind = metadata.get("original_error"), metadata.get("error_type")
    return {
        "original_error": cut(error, LONG_ERROR) if isinstance(error, str) else "",
        "error_type": _name(kind if isinstance(kind, str) else "Unknown"),
        "retry_count": _whole(metadata.get("retry_count"), _MOST) or 0,
        "last_failure_timestamp": _moment(metadata.get("last_failure_timestamp"), time_ms),
        "dlq_published_at": _moment(metadata.get("dlq_published_at"), time_ms),
    }


def _source(headers: Mapping[str, bytes | None], metadata: Mapping[str, Any]) -> str:
    topic, partition, offset = (
        _text(headers.get(f"__dlq.errors.{name}")) for name in ("topic", "partition", "offset")
    )
    if records.is_fit(topic) and _NUMBER.fullmatch(partition) and _NUMBER.fullmatch(offset):
        return f"{topic}|{partition}|{offset}"
    said = metadata.get("source")
    return said if records.is_fit(said) else ""


def _reason(
    headers: Mapping[str, bytes | None], metadata: Mapping[str, Any], *, is_bytes: bool
) -> str:
    said = _text(headers.get(REASON)) or metadata.get("reason")
    if said in get_args(records.Reason):
        return str(said)
    return "undecodable" if is_bytes else UNKNOWN_REASON


def redrives_of(headers: Headers) -> int:
    """Return the number of redrives, as the record says."""
    said = _text(dict(headers).get(REDRIVES))
    return int(said) if _NUMBER.fullmatch(said) and int(said) <= _MOST else 0


def _without_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if name != METADATA}


def _first_fit(*names: object) -> str:
    return next((name for name in names if records.is_fit(name)), "")


def _object(raw: bytes | None) -> dict[str, Any] | None:
    try:
        found = orjson.loads(raw or b"")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")


def _bytes(said: object) -> bytes | None:
    if not isinstance(said, str):
        return None
    try:
        return b64decode(said, validate=True)
    except (NotBase64, ValueError):
        return None


def _moment(said: object, otherwise: int) -> int:
    found = _whole(said, _LAST_MS)
    return otherwise if found is None else found


def _whole(said: object, most: int) -> int | None:
    if not isinstance(said, int) or isinstance(said, bool):
        return None
    return said if 0 <= said <= most else None
