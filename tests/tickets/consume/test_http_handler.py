"""Posting tickets: what comes back is bounded, and no ticket knows of another."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from carteiro.errors import DeliveryFailed
from carteiro.tickets.consume.http_handler import HttpHandler, http_client
from carteiro.tickets.ticket import Record, Ticket
from support.services import HOST

Answer = Callable[[asyncio.StreamWriter], None]
TICKET = Ticket(
    "t-1", "POST", Record("tickets", 0, 0, b"t-1", b'{"ticket_id":"t-1","task_type":"POST"}')
)


class Server:
    """Answers all alike; remembers how it was asked, and how many connections there were."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.url = ""
        self.heads: list[str] = []
        self.connections = 0
        self.cut_off = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
                await reader.readexactly(len(TICKET.record.body or b""))
                self.answer(writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.cut_off.set()
        finally:
            writer.close()


@asynccontextmanager
async def a_server(answer: Answer) -> AsyncIterator[Server]:
    """One that runs until the end of the block."""
    ours = Server(answer)
    server = await asyncio.start_server(ours.serve, HOST, 0)
    ours.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/"
    async with server:
        yield ours


def says(status: str, body: bytes, *more: str) -> Answer:
    """An answer with a body, and more headers."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", *more, "", ""])
    return lambda writer: writer.write(head.encode() + body)


def endless(status: str) -> Answer:
    """An answer that says that more comes than ever does."""
    head = f"HTTP/1.1 {status}\r\ncontent-length: 1000000000\r\n\r\n".encode()
    return lambda writer: writer.write(head + b"x" * 200_000)


async def test_an_answer_without_end_is_not_listened_to() -> None:
    """The meaning stands in its first line; the connection is given up."""
    async with a_server(endless("200 OK")) as server, http_client(1) as client:
        await HttpHandler(server.url, client)(TICKET)
        async with asyncio.timeout(10):
            await server.cut_off.wait()


async def test_nor_is_one_that_is_an_error() -> None:
    """It is quoted from its beginning."""
    async with a_server(endless("500 Oh")) as server, http_client(1) as client:
        with pytest.raises(DeliveryFailed) as raised:
            await HttpHandler(server.url, client)(TICKET)
        assert raised.value.failure.code == "HTTP_500"
        assert raised.value.failure.reason == f"HTTP 500: {'x' * 500}"
        async with asyncio.timeout(10):
            await server.cut_off.wait()


async def test_a_connection_is_used_again() -> None:
    """A short answer is read to its end."""
    async with a_server(says("200 OK", b"x" * 10_000)) as server, http_client(1) as client:
        for _ in range(3):
            await HttpHandler(server.url, client)(TICKET)
        assert (server.connections, len(server.heads)) == (1, 3)


async def test_nothing_of_one_request_is_sent_with_the_next() -> None:
    """No cookies; and no answer that has to be unpacked is asked for."""
    answer = says("200 OK", b"", "set-cookie: session=secret; path=/")
    async with a_server(answer) as server, http_client(1) as client:
        for _ in range(2):
            await HttpHandler(server.url, client)(TICKET)
        assert not any("cookie:" in head for head in server.heads)
        assert all("accept-encoding: identity" in head for head in server.heads)
