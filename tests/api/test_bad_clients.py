"""Slow, broken and malicious clients, on a real socket."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from carteiro.api.connection import MOST_HEAD_BYTES
from carteiro.app import Carteiro
from carteiro.model import MessageFilter
from support.http import KEY_OF_ACME, an_email, opened, stored
from support.serving import served

IMPATIENT = {"request_timeout_ms": 50}
HEAD = (
    f"POST /v1/email/send HTTP/1.1\r\nHost: carteiro.test\r\nX-API-Key: {KEY_OF_ACME}\r\n"
    "Content-Type: application/json\r\n"
).encode()


class Wire:
    """A connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, *parts: bytes) -> None:
        """Send this, and wait until it is on its way."""
        self._writer.write(b"".join(parts))
        await self._writer.drain()

    async def all_that_comes(self) -> bytes:
        """Everything until the server closes."""
        try:
            return await asyncio.wait_for(self._reader.read(), 30)
        except ConnectionResetError:
            return b""

    async def answer(self) -> tuple[int, bytes]:
        """The status of the next answer, and its body."""
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 30)
        lines = head.decode("latin-1").lower().split("\r\n")
        [length] = [each.split(":")[1] for each in lines if each.startswith("content-length")]
        return int(lines[0].split()[1]), await self._reader.readexactly(int(length))


@asynccontextmanager
async def a_wire(post: Carteiro) -> AsyncIterator[Wire]:
    """A new connection to the API."""
    async with served(post) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield Wire(reader, writer)
        finally:
            writer.close()


def of_length(body: bytes) -> bytes:
    """The end of a head that declares this body."""
    return b"Content-Length: %d\r\n\r\n" % len(body)


# --- slow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent_so_far", [b"", b'{"to":'])
async def test_missing_body_is_408(sent_so_far: bytes) -> None:
    """The client gets the answer, the connection is closed, and nothing is stored."""
    patience = {"request_timeout_ms": 500}  # after twice that it is cut off without an answer
    async with opened("memory://", api=patience) as post, a_wire(post) as wire:
        await wire.say(HEAD, b"Content-Length: 1000\r\n\r\n", sent_so_far)
        said = await wire.all_that_comes()
        left = await stored(post)

    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"REQUEST_TIMEOUT"' in said
    assert left == 0


@pytest.mark.parametrize("sent_so_far", [b"", b"POST /v1/em", HEAD])
async def test_missing_head_closes_the_connection(sent_so_far: bytes) -> None:
    async with opened("memory://", api=IMPATIENT) as post, a_wire(post) as wire:
        await wire.say(sent_so_far)
        said = await wire.all_that_comes()

    assert said == b""


async def test_second_request_has_its_own_timeout() -> None:
    body = json.dumps(an_email()).encode()

    async with opened("memory://", api=IMPATIENT) as post, a_wire(post) as wire:
        await wire.say(HEAD, of_length(body), body)
        status, _ = await wire.answer()
        await wire.say(b"POST /v1/em")
        said = await wire.all_that_comes()

    assert (status, said) == (202, b"")


async def test_fast_client_reuses_its_connection(post: Carteiro) -> None:
    """One request after another."""
    body = json.dumps(an_email()).encode()

    async with a_wire(post) as wire:
        statuses = []
        for _ in range(3):
            await wire.say(HEAD, of_length(body), body)
            statuses.append((await wire.answer())[0])

    assert statuses == [202, 202, 202]
    assert await stored(post) == 3


# --- large --------------------------------------------------------------------------------------


async def test_endless_head_closes_the_connection() -> None:
    """It is not collected in memory."""
    line = b"X-Filler: " + b"x" * 4000 + b"\r\n"

    async with opened("memory://") as post, a_wire(post) as wire:
        await wire.say(HEAD)
        for _ in range(2 * MOST_HEAD_BYTES // len(line)):
            try:
                await wire.say(line)
            except ConnectionError:
                break
        said = await wire.all_that_comes()

    assert said == b""


async def test_endless_body_is_413() -> None:
    """In chunks, without a length: refused as soon as it is too much."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    async with opened("memory://") as post, a_wire(post) as wire:
        await wire.say(HEAD, b"Transfer-Encoding: chunked\r\n\r\n")
        await wire.say(chunk * 17)
        status, body = await wire.answer()
        left = await stored(post)

    assert (status, json.loads(body)["error"]["code"]) == (413, "REQUEST_TOO_LARGE")
    assert left == 0


# --- malicious ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"X-Request-Id: a\rX-Evil: 1\r\n",
        b"X-Request-Id: a\x00b\r\n",
        b"X-Request-Id: a\r\n X-Evil: 1\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
    ],
)
async def test_ambiguous_head_is_refused(line: bytes) -> None:
    """Nothing of it is echoed as a header, and nothing is accepted."""
    async with opened("memory://", api=IMPATIENT) as post, a_wire(post) as wire:
        await wire.say(HEAD, line, b"\r\n")
        said = await wire.all_that_comes()
        left = await stored(post)

    assert b"\r\nx-evil" not in said.lower()
    assert not said.startswith(b"HTTP/1.1 2")
    assert left == 0


@pytest.mark.parametrize("before", [1, 3])
async def test_garbage_after_a_request_is_a_client_error(
    post: Carteiro, before: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is answered 400 while earlier requests are still processed; their answers are dropped."""
    ask = b"GET /health/live HTTP/1.1\r\nHost: carteiro.test\r\n\r\n"
    async with a_wire(post) as wire:
        await wire.say(ask * before, b"\x00\x01\r\n\r\n")
        said = await wire.all_that_comes()
        await asyncio.sleep(0.01)  # an answer that comes late is made by now

    assert b"HTTP/1.1 400 " in said
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"headers": {"X-A": "b\r\nBcc: all@example.com"}}, "headers.X-A"),
        ({"headers": {"X-A\r\nBcc": "all@example.com"}}, "headers"),
        ({"subject": "a\r\nBcc: all@example.com"}, "subject"),
        ({"from": "ana@example.com\r\nBcc: all@example.com"}, "from"),
        ({"replyTo": "ana@example.com\nX-Evil: 1"}, "replyTo"),
        ({"tags": ["a\nb"]}, "tags.0"),
    ],
)
async def test_header_injection_is_refused(
    post: Carteiro, changes: dict[str, object], field: str
) -> None:
    """A line break in a value that becomes an e-mail header is 422."""
    body = json.dumps(an_email(**changes)).encode()

    async with a_wire(post) as wire:
        await wire.say(HEAD, of_length(body), body)
        status, said = await wire.answer()

    assert status == 422
    assert [each["field"] for each in json.loads(said)["error"]["details"]] == [field]
    assert await stored(post) == 0


async def test_disconnected_client_leaves_no_partial_message(post: Carteiro) -> None:
    """A request is accepted whole or not at all, and others are served."""
    body = json.dumps(an_email()).encode()

    async with served(post) as port:
        for cut in (len(body), len(body) - 1, 0):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + of_length(body) + body[:cut])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        wire = Wire(reader, writer)
        await wire.say(HEAD, of_length(body), body)
        status, _ = await wire.answer()
        writer.close()

    assert status == 202
    assert await stored(post) in {1, 2}
    page = await post.backend.reading.messages(MessageFilter())
    for message in page.rows:
        assert [each.type for each in await post.backend.reading.events(message.id)] == ["ENQUEUED"]
        assert await post.backend.reading.place(message.id) is not None
