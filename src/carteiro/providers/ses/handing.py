"""The moment of the hand-over inside an HTTP request: directly before the last bytes of its body."""

import asyncio
from contextvars import ContextVar
from typing import Any

from aiobotocore.httpsession import AIOHTTPSession
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from carteiro.ports.provider import Handover

# So much goes out in one piece: it is not worth a second turn of the network.
_ONE_PIECE = 64 * 1024

handing_over: ContextVar[Handover | None] = ContextVar("handing_over", default=None)


class HandingSession(AIOHTTPSession):  # type: ignore[misc] # it comes without types
    """Sends requests; one that hands a mail over begins the hand-over as late as can be."""

    async def send(self, request: Any) -> Any:  # noqa: ANN401 - a request and an answer of botocore
        """The answer to the request."""
        handover = handing_over.get()
        if handover is not None:
            request.body = _HandedOver(request.body, handover)
        return await super().send(request)


class _HandedOver(Payload):
    """A body that cannot have been taken before its end: its length is announced, its hash is signed."""

    _autoclose = True  # nothing is open
    _value: bytes

    def __init__(self, body: bytes, handover: Handover) -> None:
        super().__init__(body)
        self._size = len(body)
        self._handover = handover

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """As text."""
        return self._value.decode(encoding, errors)

    async def write_with_length(
        self,
        writer: AbstractStreamWriter,
        content_length: int | None,  # noqa: ARG002 - it is the body's own, as botocore has signed it
    ) -> None:
        """As `write`."""
        await self.write(writer)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write all but the end, begin the hand-over, write the end."""
        body = memoryview(self._value)
        if len(body) > _ONE_PIECE:
            await writer.write(body[:-_ONE_PIECE])
            await writer.drain()
            body = body[-_ONE_PIECE:]
        if _is_closed(writer):
            raise ConnectionResetError("SES closed the connection before the whole mail was sent")
        self._handover.begin()
        await writer.write(body)


def _is_closed(writer: AbstractStreamWriter) -> bool:
    """True if the connection is closing, and writes are lost."""
    transport: asyncio.Transport | None = getattr(writer, "transport", None)
    return transport is None or transport.is_closing()
