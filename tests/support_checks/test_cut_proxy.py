"""The proxy of the tests forwards everything unchanged, and cuts connections on demand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import pytest

from support.cut_proxy import CutProxy, a_cut_proxy
from support.services import HOST, free_port

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

ENDED = (ConnectionError, asyncio.IncompleteReadError)
MEAN_BYTES = 50_000
MANY = bytes(MEAN_BYTES * 20)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back everything received."""
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[CutProxy]:
    """A proxy before an echo server."""
    port = free_port()
    async with await asyncio.start_server(echo, HOST, port), a_cut_proxy(port) as proxy:
        yield proxy


@asynccontextmanager
async def a_client(proxy: CutProxy) -> AsyncIterator[Streams]:
    """A client connected through the proxy, for the time of the block."""
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(HOST, proxy.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def heard(client: Streams, said: bytes) -> bytes:
    """Bytes that come back."""
    reader, writer = client
    writer.write(said)
    return await reader.readexactly(len(said))


async def bytes_until_cut(proxy: CutProxy, seed: int) -> list[int]:
    """Number of bytes until the cut, for a few connections one after the other."""
    proxy.cut_at_random(seed, mean_bytes=MEAN_BYTES)
    counts = []
    for _ in range(5):
        before = proxy.bytes_handed_on
        async with a_client(proxy) as client:
            with pytest.raises(ENDED):
                await heard(client, MANY)
        counts.append(proxy.bytes_handed_on - before)
    return counts


async def test_everything_is_forwarded(proxy: CutProxy) -> None:
    """In both directions, also more than any buffer holds."""
    said = bytes(range(256)) * 20_000

    async with a_client(proxy) as client:
        assert await heard(client, said) == said


async def test_client_that_closes_is_not_a_cut(proxy: CutProxy) -> None:
    """The server sees the end, and its own end reaches the client."""
    async with a_client(proxy) as (reader, writer):
        assert await heard((reader, writer), b"bye") == b"bye"
        writer.write_eof()

        assert await reader.read() == b""
    assert proxy.cuts == 0


async def test_cut_ends_open_connections_only(proxy: CutProxy) -> None:
    """The next client gets through at once."""
    async with a_client(proxy) as before:
        assert await heard(before, b"hello") == b"hello"

        proxy.cut()

        with pytest.raises(ENDED):
            await heard(before, b"lost")
    async with a_client(proxy) as after:
        assert await heard(after, b"again") == b"again"
    assert (proxy.connections, proxy.cuts) == (2, 1)


async def test_random_cuts_repeat_with_their_seed(proxy: CutProxy) -> None:
    """A failed test fails again: a connection ends after the same number of bytes."""
    first, again, another = [await bytes_until_cut(proxy, seed) for seed in (7, 7, 8)]

    assert first == again
    assert len({*first, *another}) == 10
    assert proxy.cuts == 15


async def test_repaired_proxy_holds_again(proxy: CutProxy) -> None:
    """Also for clients that came while it was frail."""
    proxy.cut_at_random(7, mean_bytes=MEAN_BYTES)
    async with a_client(proxy) as client:
        assert await heard(client, b"hello") == b"hello"

        proxy.mend()

        assert await heard(client, MANY) == MANY
    assert proxy.cuts == 0


async def test_stopped_proxy_refuses_connections(proxy: CutProxy) -> None:
    """Like a server that is down; it comes back at the same port."""
    async with a_client(proxy) as client:
        assert await heard(client, b"hello") == b"hello"
        proxy.stop()
        with pytest.raises(ENDED):
            await heard(client, b"lost")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(HOST, proxy.port)

    await proxy.resume()

    async with a_client(proxy) as client:
        assert await heard(client, b"again") == b"again"


async def test_stalled_bytes_flow_later(proxy: CutProxy) -> None:
    """The connection is up and silent, as with a pulled cable; no byte is lost."""
    async with a_client(proxy) as client:
        assert await heard(client, b"hello") == b"hello"

        proxy.stall()
        answer = asyncio.create_task(heard(client, b"later"))
        await proxy.held_back.wait()
        assert not answer.done()
        proxy.flow()

        assert await answer == b"later"


async def test_stalled_connection_can_be_cut(proxy: CutProxy) -> None:
    """The bytes held back are lost with it."""
    async with a_client(proxy) as client:
        assert await heard(client, b"hello") == b"hello"

        proxy.stall()
        answer = asyncio.create_task(heard(client, b"lost"))
        await proxy.held_back.wait()
        proxy.cut()

        with pytest.raises(ENDED):
            await answer


async def test_frozen_connection_hangs_and_others_do_not(proxy: CutProxy) -> None:
    """The client gets no error."""
    async with a_client(proxy) as before:
        assert await heard(before, b"hello") == b"hello"

        proxy.freeze()
        answer = asyncio.create_task(heard(before, b"lost"))
        async with a_client(proxy) as after:
            assert await heard(after, b"again") == b"again"

        assert not answer.done()
        await proxy.close()
        with pytest.raises(ENDED):
            await answer


async def test_unreachable_server_is_a_cut() -> None:
    """The client is not left waiting."""
    async with a_cut_proxy(free_port()) as proxy, a_client(proxy) as client:
        with pytest.raises(ENDED):
            await heard(client, b"anybody?")
    assert proxy.cuts == 1
