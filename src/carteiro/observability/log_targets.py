"""Targets of the log: lines of JSON on a stream, or records of the standard library's `logging`."""

import asyncio
import atexit
import functools
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final, Protocol, TypeAlias

import orjson

from carteiro.policy.addresses import mask_text

_WHOLE_BYTES: Final = 4096  # a pipe takes this in one piece, so that lines of processes do not mix


class Stream(Protocol):
    """Target of lines; unbuffered."""

    def write(self, line: bytes, /) -> object:
        """Write the whole line now."""


class Level(IntEnum):
    """Levels of lines; ``OFF`` is above all of them."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    OFF = 100


class JsonLines:
    """Writes each event as a line of JSON. The lines of one turn of the event loop are written together.

    A write for each line would release the interpreter lock each time. Callers check the level first.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._waiting: list[bytes] = []
        atexit.register(self.drain)  # a loop that ends early leaves its last turn unwritten

    def write_all(
        self, level: Level, message: str, event: str, lines: Sequence[Mapping[str, Any]]
    ) -> None:
        """Write a line for each of these fields, with the event's name and message."""
        named = level.name.lower()
        start = {"level": named, "message": message, "timestamp": _now(), "event": event}
        rendered = [_render({**start, **fields}) for fields in lines]
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a thread of its own, or no loop at all
            self._put(b"".join(rendered))
            return
        if not self._waiting:
            loop.call_soon(self.drain)
        self._waiting += rendered

    def drain(self) -> None:
        """Write what waits."""
        lines, self._waiting = self._waiting, []
        piece = b""
        for line in lines:
            if piece and len(piece) + len(line) > _WHOLE_BYTES:
                self._put(piece)
                piece = b""
            piece += line
        if piece:
            self._put(piece)

    def _put(self, piece: bytes) -> None:
        with suppress(OSError, ValueError):  # a closed stderr must not fail a delivery
            self._stream.write(piece)


class LoggingRecords:
    """Gives each event to the logger of its name."""

    def write_all(
        self, level: Level, message: str, event: str, lines: Sequence[Mapping[str, Any]]
    ) -> None:
        """Make a record of each of these fields; none if the logger is disabled."""
        subject, has_subject, _ = event.partition(".")
        logger = logging.getLogger(f"carteiro.{subject}" if has_subject else "carteiro")
        if not logger.isEnabledFor(level):
            return
        for fields in lines:
            line = _cleaned({"message": message, "event": event, **fields})
            said = line.pop("message")
            record = logger.makeRecord(logger.name, int(level), "carteiro", 0, said, (), None)
            record.__dict__ = line | record.__dict__ | {"fields": line}
            with suppress(Exception):  # a filter or handler that fails must not fail a delivery
                logger.handle(record)

    def drain(self) -> None:
        """Nothing waits."""


Target: TypeAlias = JsonLines | LoggingRecords


def _now() -> str:
    """ISO 8601 in UTC with milliseconds."""
    second, millisecond = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_up_to_second(second)}.{millisecond:03d}Z"


@functools.lru_cache(1)
def _up_to_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _render(line: dict[str, Any]) -> bytes:
    try:
        rendered = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # half a surrogate pair, in the answer of a provider or the error of a task
        rendered = b"@"
    if b"@" in rendered:
        return orjson.dumps(_cleaned(line), option=orjson.OPT_APPEND_NEWLINE)
    return rendered


def _cleaned(line: dict[str, Any]) -> dict[str, Any]:
    return {
        name: mask_text(each.encode("utf-8", "replace").decode()) if isinstance(each, str) else each
        for name, each in line.items()
    }
