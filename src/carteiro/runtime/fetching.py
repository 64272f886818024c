"""Fetch a small document from a trusted URL: bounded in time and size, without redirects."""

import asyncio
from http import HTTPStatus
from http.client import HTTPMessage
from typing import IO
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

PATIENCE_S = 5.0
MOST_BYTES = 64 * 1024
_NOT_THERE = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


class NotThere(OSError):
    """The server answers that there is no such document."""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0913, PLR0917 - as the library asks it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Refuse redirects: another server is not trusted."""


_OPENER = build_opener(_NoRedirects)


async def fetch(url: str) -> bytes:
    """Return the body; `NotThere`, or another OSError if it fails or the body is too large."""
    return await asyncio.to_thread(_fetch, url)


def _fetch(url: str) -> bytes:
    try:
        with _OPENER.open(url, timeout=PATIENCE_S) as response:
            body: bytes = response.read(MOST_BYTES + 1)
    except HTTPError as error:
        error.close()  # it holds a connection
        if error.code in _NOT_THERE:
            raise NotThere(str(error)) from None
        raise
    if len(body) > MOST_BYTES:
        raise OSError("the answer is too large")
    return body
