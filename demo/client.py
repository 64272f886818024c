"""A small HTTP client of the standard library, so that the demonstration needs nothing that Carteiro does not."""

import asyncio
import json
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

FAILURES = (OSError, HTTPException)
_TIMEOUT_S = 30.0


class Answer(NamedTuple):
    """The status and the JSON of an answer; None if it has none."""

    status: int
    document: Any


class Client:
    """Makes requests to one address, each on a connection of its own."""

    def __init__(self, address: str, *, key: str = "") -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._headers = {"X-API-Key": key, "Content-Type": "application/json"}

    async def get(self, path: str) -> Answer:
        """Read."""
        return await asyncio.to_thread(self._ask, "GET", path, None)

    async def post(self, path: str, document: object) -> Answer:
        """Send a document."""
        return await asyncio.to_thread(self._ask, "POST", path, json.dumps(document))

    def _ask(self, method: str, path: str, body: str | None) -> Answer:
        connection = HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        is_json = (response.getheader("Content-Type") or "").startswith("application/json")
        return Answer(response.status, json.loads(text) if is_json else None)
