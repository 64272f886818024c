"""A load generator for HTTP: a number of connections, each repeating its request after each answer.

Plain sockets and a reader that knows no more of HTTP than it needs, in a process of its own: a
client library would be the slowest part of the measure.
"""

import argparse
import asyncio
import json
import time

import uvloop

from watched import watched

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length: "


class _Connection(asyncio.Protocol):
    """Sends the same request until the requests of the run are used up."""

    def __init__(self, run: "_Run") -> None:
        self._run = run
        self._received = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(_END_OF_HEAD)
        if head < 0:
            return
        start = self._received.lower().index(_LENGTH, 0, head) + len(_LENGTH)
        length = int(self._received[start : self._received.index(b"\r\n", start)])
        if len(self._received) < head + len(_END_OF_HEAD) + length:
            return
        self._run.answered(self._received)
        self._received = b""
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self._run.closed(exc)

    def _ask(self) -> None:
        if self._run.take():
            self._transport.write(self._run.request)
        else:
            self._transport.close()


class _Run:
    """The number of requests, over all connections."""

    def __init__(self, request: bytes, *, requests: int, connections: int, status: int) -> None:
        self.request = request
        self.left = requests
        self._open = connections
        self._expected = b"HTTP/1.1 %d " % status
        self.done = asyncio.get_running_loop().create_future()

    def take(self) -> bool:
        """True while there are requests to send."""
        self.left -= 1
        return self.left >= 0

    def answered(self, answer: bytes) -> None:
        """Check an answer; a wrong one ends the run."""
        if not answer.startswith(self._expected) and not self.done.done():
            self.done.set_exception(RuntimeError(f"not expected: {answer[:500]!r}"))

    def closed(self, error: Exception | None) -> None:
        """One connection fewer."""
        self._open -= 1
        if self.done.done():
            return
        if error is not None:
            self.done.set_exception(error)
        elif not self._open:
            self.done.set_result(None)


async def _load(asked: argparse.Namespace) -> float:
    loop = asyncio.get_running_loop()
    body = asked.body.encode()
    head = (
        f"POST {asked.path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {asked.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    run = _Run(
        head.encode() + body,
        requests=asked.requests,
        connections=asked.connections,
        status=asked.status,
    )
    start = time.perf_counter()
    for _ in range(asked.connections):
        await loop.create_connection(lambda: _Connection(run), "127.0.0.1", asked.port)
    with watched("answers", lambda: run.left):
        await run.done
    return time.perf_counter() - start


def main() -> None:
    """Send the requests; print the seconds it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--body", required=True)
    parser.add_argument("--status", type=int, required=True)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=64)
    print(json.dumps({"seconds": uvloop.run(_load(parser.parse_args()))}))


if __name__ == "__main__":
    main()
