"""Dead tickets, and the settings of their lane."""

import base64
import random
from typing import Any

import orjson

from carteiro.config import TicketSettings, load
from carteiro.tickets.dead_letters.envelope import LIMIT, Envelope, forms, size
from carteiro.tickets.dead_letters.publisher import Publisher
from carteiro.tickets.deaths import Death
from carteiro.tickets.ticket import Record, read

NOW_MS = 1_800_000_000_000


def settings_of(**changed: object) -> TicketSettings:
    """The settings of the lane, except for these."""
    overrides = {f"tickets.{name}": each for name, each in changed.items()}
    return load(environ={}, overrides=overrides).tickets


def a_record(body: bytes | None = None, **changed: Any) -> Record:
    """A record of the tickets' topic; without a body it contains a ticket."""
    known: dict[str, Any] = {
        "topic": "execution.tickets",
        "partition": 2,
        "offset": 41,
        "key": b"ticket-1",
    }
    known |= {"body": body, "headers": (), "time_ms": NOW_MS - 60_000}
    return Record(**(known | changed))


def a_ticket_record(**fields: Any) -> Record:
    """A record with a ticket that has these fields, too."""
    return a_record(orjson.dumps({"ticket_id": "ticket-1", "task_type": "BUILD"} | fields))


def a_death(record: Record | None = None, **changed: Any) -> Death:
    """The death of the ticket in a record, after three failures."""
    known: dict[str, Any] = {"ticket": read(record or a_ticket_record()), "error": "no such host"}
    known |= {"reason": "max_retries_exceeded"}
    known |= {"error_type": "BuildFailed", "failures": 3, "failed_at_ms": NOW_MS}
    return Death(**(known | changed))


async def publish_one(publisher: Publisher, death: Death) -> bool:
    """Publish a dead letter alone; raise if that failed."""
    [result] = await publisher.publish([death])
    if isinstance(result, Exception):
        raise result
    return result


def as_read(made: Envelope, *, topic: str = "execution.tickets.dlq") -> Record:
    """The record that a consumer of the dead letter topic gets."""
    return Record(topic, 0, 7, made.key, made.value, made.headers, NOW_MS + 5)


def random_bytes(count: int) -> bytes:
    """Bytes that no codec makes smaller."""
    return random.Random(7).randbytes(count)


def random_text(count: int) -> str:
    """Text that no codec makes smaller than three quarters, and that JSON does not make longer."""
    return base64.urlsafe_b64encode(random_bytes(count)).decode()[:count]


def envelope(death: Death, *, published_at_ms: int, group: str, limit: int = LIMIT) -> Envelope:
    """The fullest form of at most ``limit`` bytes; the last form is used for any limit."""
    for made in forms(death, published_at_ms=published_at_ms, group=group):
        if size(made) <= limit:
            break
    return made
