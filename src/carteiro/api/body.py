"""The body of a request: its type, its time limit and its size limit."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta

from starlette.requests import ClientDisconnect, Request

from carteiro.api.connection import WHOLE
from carteiro.api.documents import JSON
from carteiro.api.in_flight import SHARE, InFlight, Share
from carteiro.api.networks import client_address, counted_as
from carteiro.api.refusal import Refusal
from carteiro.email.message import MAX_REQUEST_BYTES

JSON_LINES = "application/x-ndjson"
MAX_BATCH_BYTES = 16 * 1024 * 1024

_GOOD_BYE = {"Connection": "close"}  # the rest of the request is not read


def read_json(request: Request, *, most: int = MAX_REQUEST_BYTES) -> Awaitable[bytes]:
    """The body of a JSON request; a `Refusal` if it has another type, is too large or too slow."""
    return read_body(request, JSON, most=most)


def read_body(request: Request, media_type: str, *, most: int) -> Awaitable[bytes]:
    """The body, of this media type; a `Refusal` if it has another type, is too large or too slow."""
    _refuse_other_types(request, media_type)
    return read_raw(request, most=most)


async def read_raw(request: Request, *, most: int = MAX_REQUEST_BYTES) -> bytes:
    """The body, of any media type; a `Refusal` if it is too large or too slow.

    These are the bytes that a signature covers.
    """
    told = request.headers.get("content-length", "")
    declared = int(told) if told.isdecimal() else 0
    if declared > most:
        raise too_large(most)
    share: Share | None = request.scope.get(SHARE)
    if share is None:
        share, declared = _unchecked(request), 0  # without a key, only received bytes count
    share.take(declared)
    counted = None if declared else share
    whole: bytes | None = request.scope.get(WHOLE)
    if whole is not None:
        _count(len(whole), len(whole), most, counted)
        return whole
    patience: timedelta = request.app.state.body_timeout
    try:
        async with asyncio.timeout(patience.total_seconds()):
            return await _read(request, most, counted)
    except TimeoutError:
        text = f"The request must arrive within {patience.total_seconds():g} s"
        raise Refusal(408, text, headers=_GOOD_BYE) from None


def _unchecked(request: Request) -> Share:
    """The share of the caller's address, for requests without a key."""
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
        _count(len(chunk), size, most, share)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _count(more: int, size: int, most: int, share: Share | None) -> None:
    if size > most:  # the declared size may be wrong or missing
        raise too_large(most)
    if share is not None:
        share.take(more)


def _refuse_other_types(request: Request, media_type: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0]
    if given.strip().lower() != media_type:
        raise Refusal(415, f"The body must be sent as Content-Type: {media_type}")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal(415, "The body must be sent without Content-Encoding")


def too_large(most: int) -> Refusal:
    """The request is too large; the rest of it is not read."""
    return Refusal(413, f"The request must have at most {most} bytes", headers=_GOOD_BYE)
