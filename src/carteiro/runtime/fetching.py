"""Fetch something small from a place that we chose: in time, not more of it than is read, and from nowhere else."""

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
    """Whoever was asked says that there is no such thing."""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0913, PLR0917 - as the library asks it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """A redirect is an error: who sends us elsewhere is not whom we asked."""


_OPENER = build_opener(_NoRedirects)


async def fetch(url: str) -> bytes:
    """What is there; `NotThere`, or another OSError if it cannot be had, or is too much."""
    return await asyncio.to_thread(_fetch, url)


def _fetch(url: str) -> bytes:
    try:
        with _OPENER.open(url, timeout=PATIENCE_S) as response:
            body: bytes = response.read(MOST_BYTES + 1)
    except HTTPError as error:
        error.close()  # it is an answer, too, and holds its connection
        if error.code in _NOT_THERE:
            raise NotThere(str(error)) from None
        raise
    if len(body) > MOST_BYTES:
        raise OSError("the answer is too large")
    return body
