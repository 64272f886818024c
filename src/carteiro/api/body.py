"""The body of a request: of the right type, in time, and not more of it than is read."""

import asyncio
from datetime import timedelta

from starlette.requests import ClientDisconnect, Request

from carteiro.api.documents import JSON
from carteiro.api.in_flight import SHARE, InFlight, Share
from carteiro.api.networks import client_address, counted_as
from carteiro.api.refusal import Refusal
from carteiro.email.message import MAX_REQUEST_BYTES

JSON_LINES = "application/x-ndjson"
MAX_BATCH_BYTES = 16 * 1024 * 1024

_GOOD_BYE = {"Connection": "close"}  # what is still on its way is not read


async def read_json(request: Request, *, most: int = MAX_REQUEST_BYTES) -> bytes:
    """The bytes that were sent as JSON; a `Refusal` if they are not JSON, too many or too slow."""
    return await read_body(request, JSON, most=most)


async def read_body(request: Request, media_type: str, *, most: int) -> bytes:
    """The bytes that were sent as this media type; a `Refusal` if not, too many or too slow."""
    _refuse_other_types(request, media_type)
    return await read_raw(request, most=most)


async def read_raw(request: Request, *, most: int = MAX_REQUEST_BYTES) -> bytes:
    """The bytes that were sent, whatever they are called; a `Refusal` if too many or too slow.

    They are what was signed, where something was.
    """
    declared = _declared_bytes(request)
    if declared > most:
        raise too_large(most)
    share: Share | None = request.scope.get(SHARE)
    if share is None:
        share, declared = _unchecked(request), 0  # what anybody may declare counts when it is here
    share.take(declared)
    patience: timedelta = request.app.state.body_timeout
    try:
        async with asyncio.timeout(patience.total_seconds()):
            return await _read(request, most, None if declared else share)
    except TimeoutError:
        text = f"The request must arrive within {patience.total_seconds():g} s"
        raise Refusal(408, text, headers=_GOOD_BYE) from None


def _unchecked(request: Request) -> Share:
    """What the address holds whose key was not asked for."""
    unchecked: InFlight = request.app.state.unchecked
    address = client_address(request, proxies=request.app.state.proxies)
    unchecked.begin(request.scope, None if address is None else counted_as(address))
    share: Share = request.scope[SHARE]
    return share


async def _read(request: Request, most: int, share: Share | None) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > most:  # what was declared may be wrong, or nothing
            raise too_large(most)
        if share is not None:
            share.take(len(chunk))
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _refuse_other_types(request: Request, media_type: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0]
    if given.strip().lower() != media_type:
        raise Refusal(415, f"The body must be sent as Content-Type: {media_type}")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal(415, "The body must be sent without Content-Encoding")


def _declared_bytes(request: Request) -> int:
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() else 0


def too_large(most: int) -> Refusal:
    """There is more than may be read; what is still on its way is not waited for."""
    return Refusal(413, f"The request must have at most {most} bytes", headers=_GOOD_BYE)
