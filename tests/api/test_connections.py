"""Limits on open connections: number, owner and duration; on a real socket."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import uvicorn

from carteiro.api import connection
from carteiro.api.application import create_api
from carteiro.api.connection import (
    MOST_FRAMING_BYTES,
    MOST_PIPELINED,
    ConnectionLimits,
    Crowd,
)
from carteiro.api.networks import Networks
from carteiro.app import Carteiro
from carteiro.cli.metrics import metrics_parts
from carteiro.cli.process import Part
from carteiro.cli.server import http_server
from carteiro.cli.tickets.page import page_part
from carteiro.config import load
from carteiro.model import MessageFilter
from carteiro.observability import log
from carteiro.observability.readiness import Role
from support.http import KEY_OF_ACME, an_email, opened, stored
from support.serving import served

IMPATIENT = {"request_timeout_ms": 50}
PROXY = "127.0.0.1"
LIVE = b"GET /health/live HTTP/1.1\r\nHost: carteiro.test\r\n\r\n"
NAMELESS = (
    b"POST /v1/email/send HTTP/1.1\r\nHost: carteiro.test\r\nContent-Type: application/json\r\n"
)
HEAD = NAMELESS + f"X-API-Key: {KEY_OF_ACME}\r\n".encode()
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def lines() -> Iterator[io.BytesIO]:
    """Log lines of the block."""
    stream = io.BytesIO()
    log.configure("warn", stream)
    yield stream
    log.configure("off")


class Wire:
    """A connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, *parts: bytes) -> None:
        """Send this, and wait until it is on its way."""
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def answer(self) -> tuple[int, str]:
        """The status of the next answer, and its head in lower case."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 30)
        text = head.decode("latin-1").lower()
        [length] = [each[15:] for each in text.split("\r\n") if each.startswith("content-length")]
        await self.reader.readexactly(int(length))
        return int(text.split()[1]), text

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        try:
            return await asyncio.wait_for(self.reader.read(), 30)
        except ConnectionError:
            return b""

    async def talk_until_cut(self, part: bytes, *, most: int = 3000, pause: float = 0) -> int:
        """Send a part repeatedly; the number sent before the server closed."""
        for sent in range(most):
            try:
                await self.say(part)
                await asyncio.sleep(pause)
            except ConnectionError:
                return sent
        raise AssertionError(f"{most} parts were taken")


@asynccontextmanager
async def a_wire(port: int, address: str = "127.0.0.1") -> AsyncIterator[Wire]:
    """A connection from an address of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def an_api(**api: Any) -> AsyncIterator[int]:
    """An API with these settings; its port."""
    async with opened("memory://", api=api) as post, served(post) as port:
        yield port


async def is_served(port: int, address: str = "127.0.0.1") -> bool:
    """True if a new connection is answered, False if it is refused."""
    async with a_wire(port, address) as wire:
        with suppress(ConnectionError):
            await wire.say(LIVE)
        said = (
            await wire.rest() if (said := await wire.reader.read(12)) != b"HTTP/1.1 200" else said
        )
        return said == b"HTTP/1.1 200"


async def served_again(port: int) -> None:
    """Wait until a new connection is answered."""
    async with asyncio.timeout(30):
        while not await is_served(port):
            await asyncio.sleep(0.01)


# --- requests that do not end -------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [b"X-Filler: x\r\n", b"x" * 1000, b"X-Long: " + b"y" * 1000],
    ids=["many trailers", "one long name", "one long value"],
)
async def test_endless_trailers_close_the_connection(part: bytes) -> None:
    """They are counted to the last one, also after a large body."""
    async with an_api() as port, a_wire(port) as wire:
        await wire.say(HEAD, CHUNKED, b"c0000\r\n" + b" " * 0xC0000 + b"\r\n0\r\n", part)
        block = part * (16 * 1024 // len(part))
        sent = await wire.talk_until_cut(block, pause=0.001)

    assert sent * len(block) < 50 * MOST_FRAMING_BYTES  # including the buffers of the system


@pytest.mark.parametrize(
    "part", [b"1;" + b"x" * 500 + b"\r\n \r\n", b";" + b"x" * 1000], ids=["chunks", "extension"]
)
async def test_endless_framing_closes_the_connection(part: bytes) -> None:
    """Chunk extensions are not part of the body, and are bounded too."""
    async with an_api() as port, a_wire(port) as wire:
        await wire.say(HEAD, CHUNKED, b"1" if part.startswith(b";") else b"")

        await wire.talk_until_cut(part * 64, pause=0.001)


async def test_trailers_are_dropped() -> None:
    """A request with some is accepted, and none of them counts as a header."""
    body = json.dumps(an_email()).encode()
    trailers = b"X-Request-Id: from-a-trailer\r\nX-API-Key: other\r\n"

    async with an_api() as port, a_wire(port) as wire:
        await wire.say(HEAD, CHUNKED, b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(body), body, trailers))
        status, head = await wire.answer()

    assert status == 202
    assert "from-a-trailer" not in head


async def test_small_chunks_are_accepted() -> None:
    """A client that writes byte by byte has more framing than body, and is served."""
    body = json.dumps(an_email(text="x" * 20_000)).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body)

    async with an_api() as port, a_wire(port) as wire:
        await wire.say(HEAD, CHUNKED, chunks, b"0\r\n\r\n")
        status, _ = await wire.answer()

    assert status == 202


async def test_slow_trailers_are_408() -> None:
    """The timeout runs until the last of them, however steadily they come."""
    async with an_api(**IMPATIENT) as port, a_wire(port) as wire:
        await wire.say(HEAD, CHUNKED, b"2\r\n{}\r\n0\r\n")
        await wire.talk_until_cut(b"X-A: b\r\n", pause=0.01)
        said = await wire.rest()

    assert said == b"" or said.startswith(b"HTTP/1.1 408 ")


async def test_endless_line_breaks_between_requests_close_the_connection() -> None:
    """They belong to no request, and do not keep a connection open."""
    async with an_api(**IMPATIENT) as port, a_wire(port) as wire:
        await wire.say(LIVE)
        status, _ = await wire.answer()
        await wire.talk_until_cut(b"\r\n", pause=0.01)

    assert status == 200


@pytest.mark.parametrize("before", [b"", LIVE + LIVE], ids=["one answer", "several"])
async def test_idle_connection_is_closed(before: bytes, monkeypatch: Any) -> None:
    """Without a timer for each answer, and after the answer has come."""
    monkeypatch.setattr(uvicorn, "Config", partial(uvicorn.Config, timeout_keep_alive=0.05))  # type: ignore[arg-type]

    async with an_api() as port, a_wire(port) as wire:
        await wire.say(before + LIVE)
        said = await wire.rest()

    assert said.count(b"HTTP/1.1 200") == 1 + before.count(b"GET")
    assert b"connection: close" not in said


async def test_bodies_with_and_without_their_heads_are_read() -> None:
    """Requests in any number of parts, one after another and pipelined, get their own answers."""
    bodies = [json.dumps(an_email(subject=f"Number {n}")).encode() for n in range(4)]
    first, second, third, fourth = [
        HEAD + b"X-Request-Id: n-%d\r\nContent-Length: %d\r\n\r\n%s" % (n, len(body), body)
        for n, body in enumerate(bodies)
    ]
    async with opened("memory://") as post, served(post) as port, a_wire(port) as wire:
        for part in (first + second[:-7], second[-7:] + third, fourth[:40], fourth[40:]):
            await wire.say(part)
            await asyncio.sleep(0.01)  # so that it is read by itself
        answers = [await wire.answer() for _ in range(4)]
        messages = (await post.backend.reading.messages(MessageFilter(), limit=10)).rows

    assert [status for status, _ in answers] == [202] * 4
    assert [f"x-request-id: n-{n}" in head for n, (_, head) in enumerate(answers)] == [True] * 4
    assert {each.subject for each in messages} == {f"Number {n}" for n in range(4)}


async def test_pipelined_requests_are_bounded() -> None:
    """A client that sends without reading answers does not fill the memory."""
    async with an_api() as port, a_wire(port) as wire:
        await wire.say(LIVE * (MOST_PIPELINED + 10))
        said = await wire.rest()

    assert said.count(b"HTTP/1.1 200") <= MOST_PIPELINED + 1


async def test_client_that_reads_no_answer_is_disconnected() -> None:
    """Its connection is free for others again."""
    async with an_api(**IMPATIENT, max_connections=1) as port, a_wire(port) as wire:
        sock: socket.socket = wire.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await wire.say(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 60)

        await served_again(port)


# --- answers before the request is read ---------------------------------------------------------


async def test_answer_before_the_body_is_read_closes_the_connection(monkeypatch: Any) -> None:
    """It says so, it arrives, and a client that goes on sending is disconnected."""
    monkeypatch.setattr(connection, "_LINGER_S", 0.1)

    async with an_api(max_connections=1) as port, a_wire(port) as wire:
        await wire.say(NAMELESS, b"Content-Length: 1000000\r\n\r\nx")
        status, head = await wire.answer()
        end = await wire.rest()
        sent = await wire.talk_until_cut(b"x", pause=0.01)
        await served_again(port)

    assert (status, "connection: close" in head, end) == (401, True, b"")
    assert sent < 1000


async def test_lingering_reads_a_bounded_number_of_bytes(monkeypatch: Any) -> None:
    """However fast the rest of a body comes."""
    monkeypatch.setattr(connection, "_LINGER_S", 60.0)

    async with an_api(max_connections=1) as port, a_wire(port) as wire:
        await wire.say(NAMELESS, b"Content-Length: 1000000000\r\n\r\nx")
        await wire.answer()
        await wire.talk_until_cut(b"x" * 65536)

        await served_again(port)


async def test_answer_arrives_while_its_body_is_still_sent() -> None:
    """Closed at once, the client's system would discard the answer."""
    async with an_api() as port, a_wire(port) as wire:
        await wire.say(NAMELESS, b"Content-Length: 900000\r\n\r\n")
        for _ in range(9):
            await wire.say(b"x" * 100_000)
        status, _ = await wire.answer()

    assert status == 401


async def test_complete_body_leaves_the_connection_open() -> None:
    """Also if it was not looked at."""
    async with an_api() as port, a_wire(port) as wire:
        answers = []
        for _ in range(2):
            await wire.say(NAMELESS, b"Content-Length: 2\r\n\r\n{}")
            answers.append(await wire.answer())

    assert [(status, "connection: close" in head) for status, head in answers] == [(401, False)] * 2


# --- number
# ---------------------------------------------------------------------------------------


async def test_connections_are_bounded_in_total(lines: io.BytesIO) -> None:
    """A client beyond the limit gets an answer; the log has one line a minute."""
    async with an_api(max_connections=2) as port:
        for _ in range(2):
            async with a_wire(port), a_wire(port, "127.0.0.2"):
                refused = [await is_served(port) for _ in range(3)]
            await served_again(port)
            assert refused == [False] * 3
    log.flush()

    told = [each for each in lines.getvalue().splitlines() if b"bound.reached" in each]
    assert len(told) == 1
    assert b'"most":2' in told[0]


async def test_connections_are_bounded_by_address() -> None:
    """An address at its limit is refused, and others are served."""
    async with an_api(max_connections_per_address=2) as port:
        async with a_wire(port), a_wire(port):
            theirs, of_others = await is_served(port), await is_served(port, "127.0.0.2")
        await served_again(port)

    assert (theirs, of_others) == (False, True)


async def test_refused_connection_gets_503() -> None:
    """With a Retry-After, and then it is closed."""
    async with an_api(max_connections=1) as port, a_wire(port), a_wire(port) as refused:
        said = await refused.rest()

    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: " in said
    assert b"connection: close" in said


async def test_requests_behind_a_proxy_are_bounded_by_the_forwarded_address() -> None:
    """The proxy itself may open any number of connections."""
    half = b"Content-Length: 1000\r\n\r\n{"
    body = json.dumps(an_email()).encode()
    whole = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    async def asked(port: int, client: str, rest: bytes) -> tuple[int, str]:
        async with a_wire(port, PROXY) as wire:
            await wire.say(HEAD, f"X-Forwarded-For: {client}\r\n".encode(), rest)
            return await wire.answer()

    async with (
        an_api(trusted_proxies=PROXY, max_connections_per_address=2) as port,
        a_wire(port, PROXY) as first,
        a_wire(port, PROXY) as second,
    ):
        for each in (first, second):
            await each.say(HEAD, b"X-Forwarded-For: 203.0.113.5\r\n", half)
        async with asyncio.timeout(30):  # until both are being read
            while (answer := await asked(port, "203.0.113.5", whole))[0] == 202:
                await asyncio.sleep(0.01)
        of_another = await asked(port, "203.0.113.6", whole)
        made_up = await asked(port, "203.0.113.6, 203.0.113.5", whole)
        as_itself = await asked(port, PROXY, whole)

    assert (answer[0], "retry-after: " in answer[1]) == (429, True)
    assert (of_another[0], made_up[0], as_itself[0]) == (202, 429, 202)


async def test_untrusted_proxy_is_bounded_by_its_own_address() -> None:
    """X-Forwarded-For from a stranger is ignored."""
    async with (
        an_api(trusted_proxies="192.0.2.1", max_connections_per_address=1) as port,
        a_wire(port) as wire,
    ):
        await wire.say(HEAD, b"X-Forwarded-For: 203.0.113.5\r\n")
        refused = await is_served(port)

    assert refused is False


def test_connections_leave_file_descriptors_for_the_store(monkeypatch: Any) -> None:
    """With fewer descriptors than allowed connections, connections do not take them all."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))

    from carteiro.cli.server import _within_files  # noqa: PLC0415 - what is tried

    assert [_within_files(each) for each in (100, 1000, 5000)] == [100, 768, 768]


# --- the other pages ----------------------------------------------------------------------------


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@asynccontextmanager
async def running(part: Part) -> AsyncIterator[None]:
    """Run a part of a process for the time of the block."""
    task = asyncio.create_task(part.run())
    try:
        yield
    finally:
        part.stop()
        await task


@asynccontextmanager
async def a_page(which: str, **api: Any) -> AsyncIterator[int]:
    """A page that is not the API's; its port."""
    port = _free_port()
    if which == "tickets":
        given = {f"api.{name}": each for name, each in api.items()}
        place = {"tickets.metrics_host": "127.0.0.1", "tickets.metrics_port": port}
        settings = load(overrides={**given, **place})
        async with running(page_part(settings, lambda: b"", lambda: "")):
            yield port
        return
    async with opened("memory://", api=api, metrics={"host": "127.0.0.1", "port": port}) as post:
        [part] = metrics_parts(post, answers_for=Role.WORKER)
        async with running(part):
            yield port


@pytest.mark.parametrize("which", ["metrics", "tickets"])
async def test_other_pages_have_the_same_limits(which: str) -> None:
    """On a worker's page slow clients are disconnected, and connections are bounded."""
    async with a_page(which, **IMPATIENT, max_connections=1) as port:
        async with a_wire(port) as slow:
            refused = await is_served(port)
            await slow.say(b"GET /health/live HTTP/1.1\r\n")
            said = await slow.rest()
        await served_again(port)

    assert (refused, said) == (False, b"")


@pytest.mark.parametrize("which", ["metrics", "tickets"])
async def test_other_pages_read_no_body(which: str) -> None:
    """The answer is the last one on the connection, and the body is not awaited."""
    async with a_page(which) as port, a_wire(port) as wire:
        await wire.say(b"GET /health/live HTTP/1.1\r\nHost: x\r\n", CHUNKED, b"1\r\nx\r\n")
        status, head = await wire.answer()
        await wire.talk_until_cut(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")

    assert (status, "connection: close" in head) == (200, True)


async def test_stop_closes_idle_connections_at_once(post: Carteiro) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        part = http_server(
            create_api(post), listener, grace=timedelta(seconds=60), bounds=post.settings.api
        )
        task = asyncio.create_task(part.run())
        async with (
            a_wire(listener.getsockname()[1]) as idle,
            a_wire(listener.getsockname()[1]) as used,
        ):
            await used.say(LIVE)
            await used.answer()
            part.stop()
            said = await idle.rest(), await used.rest()
        await task

    assert said == (b"", b"")
    assert await stored(post) == 0


def test_connection_limit_is_logged_once(lines: io.BytesIO) -> None:
    """Clients below the limit in between cause no second line."""
    crowd = Crowd(
        ConnectionLimits(timedelta(seconds=1), most=100, most_per_address=1, proxies=Networks([]))
    )
    let_in = [crowd.let_in(address) for n in range(5) for address in ("10.0.0.1", f"10.0.1.{n}")]

    log.flush()
    told = [each for each in lines.getvalue().splitlines() if b"bound.reached" in each]
    assert (let_in.count(False), len(told)) == (4, 1)


def _crowd(*proxies: str, most: int = 1000, most_per_address: int = 1000) -> Crowd:
    second = timedelta(seconds=1)
    return Crowd(ConnectionLimits(second, most, most_per_address, Networks(proxies)))


def test_addresses_of_one_64_bit_network_count_as_one() -> None:
    """Every client with IPv6 has 2^64 of them."""
    crowd = _crowd(most_per_address=2)
    theirs = [f"2001:db8::{n}" for n in range(1, 4)]

    let_in = [crowd.let_in(each) for each in theirs]
    of_others = [crowd.let_in(each) for each in ("2001:db8:0:1::1", "203.0.113.1")]
    crowd.let_out(theirs[0])

    assert (let_in, of_others) == ([True, True, False], [True, True])
    assert crowd.let_in("2001:db8::ffff")


async def test_forwarded_addresses_of_one_network_count_as_one() -> None:
    """With any port that the proxy names."""
    half = b"Content-Length: 1000\r\n\r\n{"
    async with (
        an_api(trusted_proxies=PROXY, max_connections_per_address=1) as port,
        a_wire(port, PROXY) as first,
    ):
        await first.say(HEAD, b"X-Forwarded-For: 2001:db8::1\r\n", half)
        statuses = set()
        async with asyncio.timeout(30):  # until it is being read
            while 429 not in statuses:
                async with a_wire(port, PROXY) as wire:
                    asked = b"X-Forwarded-For: [2001:db8::2]:50123\r\n\r\n"
                    await wire.say(LIVE.removesuffix(b"\r\n"), asked)
                    statuses.add((await wire.answer())[0])

    assert statuses <= {200, 429}


@pytest.mark.parametrize("own", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_connections_are_reserved_for_local_health_checks(own: str) -> None:
    """Others never get them; a proxy on this machine counts for its clients."""
    crowd = _crowd("127.0.0.9", most=100)
    others = sum(crowd.let_in(f"203.0.113.{n}") for n in range(100))

    assert (others, crowd.let_in("127.0.0.9")) == (90, False)
    assert sum(crowd.let_in(own) for _ in range(20)) == 10
