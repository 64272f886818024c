"""Dead tickets, as they come from the dead letter topic."""

from collections.abc import Mapping
from typing import Any

import orjson

from carteiro.tickets.dead_letters.envelope import REDRIVES, DeadTicket, Envelope, opened
from carteiro.tickets.deaths import Death
from carteiro.tickets.ticket import Reason, Record, read
from support.deaths import envelope

TOPIC, DLQ_TOPIC = "execution.tickets", "execution.tickets.dlq"
DIED_MS = 1_760_000_000_000


def a_ticket(id: str = "T-1", type: str = "BUILD", **fields: Any) -> dict[str, Any]:
    """The fields of a ticket."""
    return {"ticket_id": id, "task_type": type, "status": "RUNNING", "priority": 5} | fields


def a_deep_ticket(id: str = "T-1") -> bytes:
    """A ticket that can be read, but is nested too deeply to be written again."""
    ticket = orjson.dumps(a_ticket(id))
    return b'%b,"a":%b%b}' % (ticket[:-1], b"[" * 300, b"]" * 300)


def a_letter(
    ticket: Mapping[str, Any] | bytes | None = None,
    *,
    at: int = 0,
    error: str = "no route to host",
    error_type: str = "ConnectionError",
    reason: Reason = "max_retries_exceeded",
    redrives: int = 0,
    died_ms: int = DIED_MS,
) -> Envelope:
    """The dead letter of a ticket; ``at`` is the position of the ticket in its topic."""
    body = ticket if isinstance(ticket, bytes) else orjson.dumps(ticket or a_ticket())
    headers = ((REDRIVES, str(redrives).encode()),) if redrives else ()
    record = Record(TOPIC, 0, at, None, body, (*headers, ("trace", b"abc")), died_ms)
    death = Death(read(record), reason, error_type, error, 3, died_ms)
    return envelope(death, published_at_ms=died_ms, group="worker-agents")


def an_oversized_ticket(body: bytes, *, topic: str = TOPIC, at: int = 0) -> DeadTicket:
    """A ticket whose dead letter has only the position of the ticket."""
    ticket = read(Record(topic, 0, at, None, body, (), DIED_MS))
    death = Death(ticket, "max_retries_exceeded", "ConnectionError", "away", 3, DIED_MS)
    letter = envelope(death, published_at_ms=DIED_MS, group="worker-agents", limit=0)
    return opened(Record(DLQ_TOPIC, 0, at, letter.key, letter.value, letter.headers, DIED_MS))


def a_dead_ticket(
    ticket: Mapping[str, Any] | bytes | None = None, *, at: int = 0, **facts: Any
) -> DeadTicket:
    """The same, read from the dead letter topic."""
    letter = a_letter(ticket, at=at, **facts)
    place = Record(DLQ_TOPIC, 0, at, letter.key, letter.value, letter.headers, DIED_MS)
    return opened(place)
