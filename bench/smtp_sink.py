"""A relay that takes everything and keeps nothing, as fast as can be. It says its port, and ends with its input."""

import asyncio
import sys

import uvloop

HOST = "127.0.0.1"
_EHLO = b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 50000000\r\n"
_REPLIES = {
    b"EHLO": _EHLO,
    b"MAIL": b"250 2.1.0 Ok\r\n",
    b"RCPT": b"250 2.1.5 Ok\r\n",
    b"DATA": b"354 Go on\r\n",
    b"RSET": b"250 2.0.0 Ok\r\n",
    b"QUIT": b"221 2.0.0 Bye\r\n",
}
_END = b"\r\n.\r\n"


class Sink(asyncio.Protocol):
    """One connection."""

    taken = 0  # by all

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet."""
        self._transport = transport
        self._buffer = b""
        self._is_in_body = False
        transport.write(b"220 sink ESMTP\r\n")  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Answer each command that has come whole; of a mail, only its end counts."""
        self._buffer += data
        answers = []
        while answer := self._next():
            answers.append(answer)
        if answers:
            self._transport.write(b"".join(answers))  # type: ignore[attr-defined]

    def _next(self) -> bytes | None:
        end = _END if self._is_in_body else b"\r\n"
        line, found, rest = self._buffer.partition(end)
        if not found:
            return None
        self._buffer = rest
        if self._is_in_body:
            self._is_in_body = False
            Sink.taken += 1
            return b"250 2.0.0 Ok: queued as %X\r\n" % Sink.taken
        verb = line[:4].upper()
        self._is_in_body = verb == b"DATA"
        return _REPLIES.get(verb, b"500 5.5.1 What?\r\n")


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Sink, HOST, 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(
        None, sys.stdin.read
    )  # until who started us ends


if __name__ == "__main__":
    uvloop.run(_serve())
