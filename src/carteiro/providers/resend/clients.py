"""HTTP clients of one connection each.

One client with a pool of connections would do, but for each call httpx's pool looks at every one of
them, asking the system whether it is still open: with 20 a call costs almost three times the CPU.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 15.0  # less than servers keep a connection: one that they closed is found out late


class Clients:
    """Hands out clients, the last used one first, so that surplus ones fall idle. The caller limits their number."""

    def __init__(self) -> None:
        self._idle: list[httpx.AsyncClient] = []
        self._context: ssl.SSLContext | None = None

    @asynccontextmanager
    async def one(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client for one call.

        After a call that broke or was cut short it is not used again: cancelled at the wrong moment,
        its next call would wait for the connection for ever (seen with httpcore 1.0.9).
        """
        client = self._idle.pop() if self._idle else self._make()
        try:
            yield client
        except BaseException:
            await client.aclose()
            raise
        self._idle.append(client)

    async def close(self) -> None:
        """Close all connections; none is in use any more."""
        while self._idle:
            await self._idle.pop().aclose()

    def _make(self) -> httpx.AsyncClient:
        if self._context is None:
            self._context = httpx.create_ssl_context()  # with the first call: it reads many files
        return httpx.AsyncClient(
            limits=httpx.Limits(
                max_connections=1, max_keepalive_connections=1, keepalive_expiry=_IDLE_SECONDS
            ),
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),  # the call has its own limit
            verify=self._context,
        )
