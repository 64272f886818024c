"""A proxy between clients and a server that loses their connections on demand."""

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from support.services import HOST, free_port

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # closing answers with a reset, as an unaware peer does


@dataclass(eq=False)
class _Link:
    """A client and, once it is connected, the server."""

    writers: list[asyncio.StreamWriter]
    bytes_left: int | None  # bytes until it is cut; None: it holds
    is_cut: bool = False
    is_frozen: bool = False

    def allowed(self, data: bytes) -> bytes:
        """The part of it that may still pass."""
        if self.bytes_left is None:
            return data
        passing = data[: self.bytes_left]
        self.bytes_left -= len(passing)
        return passing

    def cut(self) -> None:
        self.is_cut = True
        for writer in self.writers:
            if not writer.is_closing():
                connection: socket.socket = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    async def close(self) -> None:
        for writer in self.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


class CutProxy:
    """Forwards everything, until a test says otherwise; clients connect to `port`.

    ``cut``           every open connection ends at once, in the middle of any data
    ``cut_at_random`` each new connection ends after a random number of bytes, either way; see `mend`
    ``stop``          cut, and refuse connections until `resume`
    ``stall``         connections stay open, and nothing gets through until `flow`
    ``freeze``        open connections stay, and nothing ever gets through; new ones work as usual
    """

    def __init__(self, server_port: int) -> None:
        self.port = free_port()
        self.connections = 0  # accepted so far
        self.cuts = 0
        self.bytes_handed_on = 0
        self.held_back = asyncio.Event()  # set when a stall has held something back
        self._server_port = server_port
        self._listener: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._closing = asyncio.Event()
        self._links: set[_Link] = set()
        self._talks: set[asyncio.Task[Any]] = set()
        self._chance: random.Random | None = None
        self._mean_bytes = 0

    def cut(self) -> None:
        """End every open connection."""
        for link in [*self._links]:
            self._cut(link)

    def cut_at_random(self, seed: int, *, mean_bytes: int) -> None:
        """From now on end each new connection after this many bytes on average; a seed repeats itself."""
        self._chance, self._mean_bytes = random.Random(seed), mean_bytes

    def mend(self) -> None:
        """New connections hold again, and so do those that would have been cut."""
        self._chance = None
        for link in self._links:
            link.bytes_left = None

    def stop(self) -> None:
        """End every connection, and refuse new ones."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.cut()

    async def resume(self) -> None:
        """Accept clients again, at the same port."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._take_in, HOST, self.port)

    def stall(self) -> None:
        """Hold back all data from now on."""
        self._flowing.clear()

    def flow(self) -> None:
        """Forward the held data, and all that follows."""
        self._flowing.set()
        self.held_back.clear()

    def freeze(self) -> None:
        """Drop the open connections silently, as a firewall does."""
        for link in self._links:
            link.is_frozen = True

    async def close(self) -> None:
        """End everything; nothing is left on the loop."""
        self._closing.set()
        self.stop()
        self.flow()
        await asyncio.gather(*self._talks)

    async def _take_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)
        self.connections += 1
        link = _Link([writer], self._drawn())
        self._links.add(link)
        try:
            await self._connect(link, reader)
        finally:
            self._links.discard(link)
            await link.close()

    async def _connect(self, link: _Link, reader: asyncio.StreamReader) -> None:
        [client] = link.writers
        try:
            answers, server = await asyncio.open_connection(HOST, self._server_port)
        except OSError:
            self._cut(link)
            return
        link.writers.append(server)
        if link.is_cut:  # while we were connecting
            link.cut()
            return
        await asyncio.gather(
            self._hand_on(link, reader, server), self._hand_on(link, answers, client)
        )

    async def _hand_on(
        self, link: _Link, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        """Until one of them closes; then close the other one."""
        try:
            while data := await source.read(_CHUNK):
                if not self._flowing.is_set():
                    self.held_back.set()
                    await self._flowing.wait()
                if link.is_frozen:
                    await self._closing.wait()
                if link.is_cut:
                    return
                self._write(link, data, target)
                await target.drain()
        except ConnectionError:
            pass  # and the other one is closed
        finally:
            target.close()

    def _write(self, link: _Link, data: bytes, target: asyncio.StreamWriter) -> None:
        passing = link.allowed(data)
        target.write(passing)
        self.bytes_handed_on += len(passing)
        if link.bytes_left == 0:
            self._cut(link)

    def _drawn(self) -> int | None:
        if self._chance is None:
            return None
        return 1 + int(self._chance.expovariate(1 / self._mean_bytes))

    def _cut(self, link: _Link) -> None:
        if not link.is_cut:
            self.cuts += 1
            link.cut()


@asynccontextmanager
async def a_cut_proxy(server_port: int) -> AsyncIterator[CutProxy]:
    """A proxy before a server, on the loop of the test."""
    proxy = CutProxy(server_port)
    await proxy.resume()
    try:
        yield proxy
    finally:
        await proxy.close()
