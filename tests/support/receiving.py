"""A web server of the tests that receives webhooks, and answers as ordered."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

_REASONS = {200: "OK", 302: "Found", 500: "Internal Server Error"}


@dataclass
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """Its JSON."""
        return orjson.loads(self.body)


@dataclass
class Receiver:
    """Requests in their order; ``statuses`` are the next answers, then 200. A status of 0: no answer."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    location: str = ""


@asynccontextmanager
async def a_receiver(*statuses: int) -> AsyncIterator[Receiver]:
    """A server on a free port of loopback."""
    receiver = Receiver(statuses=list(statuses))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            lines = [line.partition(": ") for line in head[1:] if line]
            headers = {name.lower(): value for name, _, value in lines}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            receiver.received.append(Received(head[0].split()[1], headers, body))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            if status:
                to = f"Location: {receiver.location}\r\n" if receiver.location else ""
                start = f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
                end = "Content-Length: 0\r\nConnection: close\r\n\r\n"
                writer.write((start + to + end).encode())
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    receiver.url = f"http://127.0.0.1:{port}/told"
    async with server:
        yield receiver
