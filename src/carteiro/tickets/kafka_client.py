"""Options of Kafka clients, from the settings and a file of properties.

What stands in ``tickets.kafka_file`` may be secret: no error ever shows a value from there, nor a name that
does not look like one.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient

from carteiro.config import TicketSettings
from carteiro.errors import ConfigError
from carteiro.model import value
from carteiro.tickets.scrubbing import scrub
from carteiro.tickets.ticket import Record

SESSION_MS = 10_000  # heartbeats have a thread of their own; the partitions of a killed member wait this long

# What the lane rests on; another value would lose tickets, or another setting says it already.
_SET_BY_US = frozenset(
    {
        *("acks", "request.required.acks", "enable.idempotence", "transactional.id"),
        *("bootstrap.servers", "metadata.broker.list", "group.id", "message.max.bytes"),
        *("auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store"),
        "enable.partition.eof",
    }
)
_DEFAULTS = {
    "client.id": "carteiro",
    "log_level": "0",  # what it has to say we say, as lines of our log
    "reconnect.backoff.max.ms": "2000",  # a broker that is back is found soon
}
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[._][a-z0-9]+)*")
_SHORTEST_HIDDEN = 3


@value
class _Line:
    """A line of the file of properties, and where it stands."""

    number: int
    name: str
    said: str


def client_options(settings: TicketSettings) -> dict[str, str]:
    """Return the options of every client of the lane; its own go on top. `ConfigError` if one is wrong."""
    own = {line.name: line.said for line in _lines(settings.kafka_file)}
    options = _DEFAULTS | own | {"bootstrap.servers": settings.bootstrap_servers}
    try:
        AdminClient({**options})  # the library knows the properties and their values
    except KafkaException as error:
        raise refusal(settings, error) from None
    return options


def refusal(settings: TicketSettings, error: KafkaException) -> ConfigError:
    """Return the error to raise, `from None`, if the library refuses the options: its text may quote a secret."""
    lines, said = list(_lines(settings.kafka_file)), said_by(error)
    longest_first = sorted(lines, key=lambda line: len(line.name), reverse=True)
    wrong = next((line for line in longest_first if line.name in said), None)
    where = f", line {wrong.number} ({wrong.name})" if wrong else ""
    told = _without_values(said, lines)
    return ConfigError(f"tickets.kafka_file: {settings.kafka_file}{where}: {told}")


# --- the file of properties -------------------------------------------------------------------


def _lines(path: str) -> Iterator[_Line]:
    if not path:
        return
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"tickets.kafka_file: {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"tickets.kafka_file: {path}: is not a text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield _line(path, number, line)


def _line(path: str, number: int, line: str) -> _Line:
    name, equals, said = (part.strip() for part in line.partition("="))
    where = f"tickets.kafka_file: {path}, line {number}"
    if not equals or not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: must be NAME=VALUE, as librdkafka names its properties")
    if name in _SET_BY_US:
        raise ConfigError(f"{where}: {name} is not to be set here: the ticket lane sets it itself")
    return _Line(number, name, said)


def _without_values(said: str, lines: list[_Line]) -> str:
    values = {line.said for line in lines if len(line.said) >= _SHORTEST_HIDDEN}
    for each in sorted(values, key=len, reverse=True):
        said = said.replace(each, "***")
    return scrub(said)


def said_by(error: KafkaException) -> str:
    """Return the library's text; it may be secret only where a client is made."""
    said = error.args[0] if error.args else None
    return said.str() if isinstance(said, KafkaError) else str(error)


def records_of(messages: Sequence[Message]) -> list[Record]:
    """Convert messages of one topic, column by column: a Python call for each would cost as much as its JSON."""
    times = [ms for _, ms in map(Message.timestamp, messages)]
    columns = zip(
        repeat(messages[0].topic(), len(messages)),
        map(Message.partition, messages),
        map(Message.offset, messages),
        map(Message.key, messages),
        map(Message.value, messages),
        _headers_of(messages),
        times if min(times) >= 0 else [max(0, ms) for ms in times],
        strict=True,
    )
    return list(map(tuple.__new__, repeat(Record), columns))


def _headers_of(messages: Sequence[Message]) -> list[tuple[tuple[str, bytes | None], ...]]:
    try:
        found: list[Any] = list(map(Message.headers, messages))
    except (SystemError, UnicodeError):  # a ticket does not live by them
        found = [_readable_headers(each) for each in messages]
    return [tuple(each or ()) for each in found] if any(found) else [()] * len(found)


def _readable_headers(message: Message) -> object:
    """Those of a message; None, if the client cannot read their names."""
    with suppress(SystemError, UnicodeError):
        return message.headers()
    return None
