"""The server's side of a connection: one write for each answer, and limits of time and size."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, cast
from urllib.parse import unquote

import httptools
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import (
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from carteiro.api.networks import Address, Networks, counted_as, parsed_address
from carteiro.model import value
from carteiro.observability import log

MOST_HEAD_BYTES = 64 * 1024
MOST_FRAMING_BYTES = 64 * 1024  # chunk sizes of a body, and trailers
MOST_PIPELINED = 64
WHOLE = (
    "carteiro.whole"  # key of a body in the scope of its request, if it came together with the head
)
_FRAMING_PER_BYTE = 8  # a chunk of one byte has five around it
_LINGER_S = 2.0
_LOG_EVERY_S = 60.0
_KEPT_FOR_THIS_MACHINE = 10
_MOST_LINGER_BYTES = 8 * 1024 * 1024  # so that a client that sends too much still reads the refusal
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 21\r\nretry-after: 5\r\nconnection: close\r\n\r\nToo many connections\n"
)


@value
class ConnectionLimits:
    """Limits of a listener's clients; ``proxies`` serve many clients, so they have no limit per address."""

    patience: timedelta
    most: int
    most_per_address: int
    proxies: Networks


class Bound:
    """A maximum; exceeding it is logged at most once a minute."""

    __slots__ = ("_logged_at", "_name", "most")

    def __init__(self, name: str, most: int) -> None:
        self.most = most
        self._name = name
        self._logged_at = -math.inf

    def is_reached(self, count: int) -> bool:
        """True if one more is too many; logs it."""
        if count < self.most:
            return False
        now = time.monotonic()
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            log.bound_reached(self._name, most=self.most)
        return True


class Crowd:
    """The connections of one listener, in total and by client address.

    A few, at most a tenth, are reserved for this machine, so that its health checks are always answered.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.patience_s = limits.patience.total_seconds()
        self._proxies = limits.proxies
        self._total = 0
        self._kept = min(_KEPT_FOR_THIS_MACHINE, limits.most // 10)
        self._by_address: Counter[Address | None] = Counter()  # None: all whose address is unknown
        self._most = Bound("connections", limits.most)
        self._most_per_address = Bound("connections of one address", limits.most_per_address)

    def let_in(self, address: str) -> bool:
        """Count one more connection of this address, unless that is too many."""
        parsed = parsed_address(address)
        is_proxy = self._is_proxy(parsed)
        is_own = parsed is not None and parsed.is_loopback and not is_proxy
        if self._most.is_reached(self._total + (0 if is_own else self._kept)):
            return False
        if not is_proxy:
            counted = _counted(parsed)
            if self._most_per_address.is_reached(self._by_address[counted]):
                return False
            self._by_address[counted] += 1
        self._total += 1
        return True

    def let_out(self, address: str) -> None:
        """Forget a counted connection."""
        self._total -= 1
        parsed = parsed_address(address)
        if self._is_proxy(parsed):
            return
        counted = _counted(parsed)
        self._by_address[counted] -= 1
        if not self._by_address[counted]:
            del self._by_address[counted]

    def _is_proxy(self, address: Address | None) -> bool:
        return bool(self._proxies) and address is not None and address in self._proxies


def _counted(address: Address | None) -> Address | None:
    return None if address is None else counted_as(address)


def guarded(limits: ConnectionLimits) -> type[HttpToolsProtocol]:
    """The protocol of a listener with these limits.

    A request that is not complete in time is cut off: its head after ``patience``, body and trailers after
    twice that, because the body is timed where it is read, and there the client can still be answered.
    """

    class Guarded(_Guarded):
        crowd = Crowd(limits)

    return Guarded


@dataclass(slots=True, eq=False)
class _Outlet:
    """A transport whose closing is left to ``closing``, which knows if the client is still sending."""

    _transport: asyncio.Transport
    _closing: Callable[[], None]
    is_left: bool = False  # no more is written, though the client may still send

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport offers
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.is_left or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self.is_closing():  # an answer to what came before the garbage: nobody waits for it
            self._transport.write(data)

    def close(self) -> None:
        self._closing()


class Exchange(RequestResponseCycle):
    """A request and its answer, which is one write where it is known as a whole.

    Head and body as two system calls would cost more than making them.
    """

    _head: Any = None  # of an answer whose body is still to come
    disconnected = response_started = response_complete = access_log = False
    more_body = True
    chunked_encoding = None
    expected_content_length = 0

    def __init__(self, connection: "_Guarded", scope: Scope, *, keep_alive: bool) -> None:
        self.scope = scope  # type: ignore[assignment] # a TypedDict of uvicorn's own
        self.transport = connection.transport
        self.flow = connection.flow
        self.logger = connection.logger
        self.default_headers = connection.server_state.default_headers
        self.message_event = asyncio.Event()
        self.on_response = connection.on_response_complete
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = connection.expect_100_continue
        self.body = bytearray()

    @property
    def must_wait(self) -> bool:
        """True if an answer has to be sent by ASGI: the client reads too slowly, has left, or wants the head alone."""
        return self.flow.write_paused or self.disconnected or self.scope["method"] == "HEAD"

    async def send(self, message: Any) -> None:  # noqa: ANN401 - TypedDicts of uvicorn's own
        """Send a message of ASGI."""
        if message["type"] == "http.response.start" and not self.response_started:
            self._head = message
            return
        head, self._head = self._head, None
        headers = [] if head is None else head["headers"]
        has_length = any(name == b"content-length" for name, _ in headers)
        if has_length and not message.get("more_body", False) and not self.must_wait:
            self.answer(head["status"], headers, message.get("body", b""))
            return
        if head is not None:
            await super().send(head)
        await super().send(message)

    def answer(
        self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes | memoryview
    ) -> None:
        """Send all of the answer with one write."""
        lines = [STATUS_LINE[status]]
        for name, given in (*self.default_headers, *headers):
            lines += (name, b": ", given, b"\r\n")
        if HEADER_VALUE_RE.search(b"".join(lines[3::4])):
            raise RuntimeError("Invalid HTTP header value.")
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        self.response_started = self.response_complete = True
        self.transport.write(b"".join((*lines, b"\r\n", body)))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class _Dropped(list[tuple[bytes, bytes]]):
    """Drops trailers."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Keep nothing."""


_NOWHERE = _Dropped()


class _Guarded(HttpToolsProtocol):
    crowd: ClassVar[Crowd]
    _address = ""
    _timer: asyncio.TimerHandle | None = None
    _looks_every_s: float
    _raw: asyncio.Transport
    _outlet: _Outlet
    _is_let_in = False
    _is_shutting_down = False
    _keeps_alive = False
    _head_since: float | None = None  # None: no head is being read
    _request_since: float | None = None  # None: no request is being read
    _idle_since = 0.0  # the last answer
    _stuck_since: float | None = None  # None: the client reads what it asked for
    _left_since: float | None = None  # None: it is not being closed
    _has_spoken = False
    _is_fresh = False  # a request began in what was just received
    _all_body_bytes = 0
    _head_bytes = 0
    _body_bytes = 0
    _framing_bytes = 0
    _quiet_bytes = 0  # since the last piece of a body
    _lingered_bytes = 0

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        self._address = peer[0] if isinstance(peer, tuple) else ""
        self._raw = transport
        self._outlet = _Outlet(transport, self._leave)
        super().connection_made(cast("asyncio.Transport", self._outlet))
        self._is_let_in = self.crowd.let_in(self._address)
        self._begin_request()
        self._looks_every_s = min(self.crowd.patience_s, self.timeout_keep_alive)
        self._look_in(self._looks_every_s)
        if not self._is_let_in:
            transport.write(_FULL)
            self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_let_in:
            self.crowd.let_out(self._address)
        self._outlet.is_left = True  # answers have no receiver any more
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._is_shutting_down = True
        super().shutdown()

    def pause_writing(self) -> None:
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stuck_since = None
        super().resume_writing()

    # --- input

    def data_received(self, data: bytes) -> None:
        if self._left_since is not None:
            self._lingered_bytes += len(data)
            if self._lingered_bytes > _MOST_LINGER_BYTES:
                self._raw.abort()
            return
        self._has_spoken, self._is_fresh, before = True, False, self._all_body_bytes
        super().data_received(data)
        if self._request_since is None:
            if self._is_idle():
                self._begin_request()  # line breaks before a request: they may not go on for ever
        elif self._head_since is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._raw.abort()
        elif not self._is_fresh:
            self._count_framing(len(data), len(data) - (self._all_body_bytes - before))

    def eof_received(self) -> None:
        if self._left_since is not None:
            self._raw.close()
        super().eof_received()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            raise ConnectionAbortedError  # the parser stops, and it is answered 400
        self._is_fresh = True
        self._begin_request()
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        self._head_since = None
        version = self.parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "method": self.parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
        }
        before = self.cycle
        # Until all of it is here, an answer is the last one: nobody reads the rest.
        self.cycle = Exchange(self, scope, keep_alive=False)
        self.headers = _NOWHERE
        self._keeps_alive = version != "1.0" and self.parser.should_keep_alive()
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._all_body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._request_since = None
        if not self.cycle.response_started and not self._is_shutting_down:
            self.cycle.keep_alive = self._keeps_alive
        if self._is_fresh:  # nobody has begun to read it
            self.cycle.scope[WHOLE] = bytes(self.cycle.body)  # type: ignore[literal-required]
            self.cycle.body = bytearray()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self._idle_since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def _is_idle(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def _begin_request(self) -> None:
        self._head_since = self._request_since = self.loop.time()
        self._head_bytes = self._body_bytes = self._framing_bytes = self._quiet_bytes = 0

    def _count_framing(self, received: int, framing: int) -> None:
        """Count bytes that are neither head nor body: sizes and extensions of chunks, trailers."""
        self._framing_bytes += framing
        self._quiet_bytes = 0 if framing < received else self._quiet_bytes + framing
        most = MOST_FRAMING_BYTES + _FRAMING_PER_BYTE * self._body_bytes
        if self._framing_bytes > most or self._quiet_bytes > MOST_FRAMING_BYTES:
            self._raw.abort()

    # --- end

    def _leave(self) -> None:
        """Close; at once if the client is not sending.

        Otherwise its system would drop the answer when the connection is reset.
        """
        if self._left_since is not None or self._raw.is_closing():
            return
        is_talking = self._has_spoken and self._request_since is not None and self._is_let_in
        self._left_since = self.loop.time()
        if not is_talking or not self._raw.can_write_eof():
            self._raw.close()
        else:
            self._outlet.is_left = True
            self._raw.write_eof()
            self._raw.resume_reading()
        self._look_in(_LINGER_S)

    def _look(self) -> None:
        """One timer for the life of a connection: starting one for each request would cost more."""
        ends = self._ends_at()
        now = self.loop.time()
        if ends <= now:
            self._raw.abort()
            return
        idle_until = self._idle_since + self.timeout_keep_alive
        if self._request_since is None and self._is_idle() and idle_until <= now:
            self._leave()
            return
        self._look_in(min(self._looks_every_s, ends - now))

    def _look_in(self, wait: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(wait, self._look)

    def _ends_at(self) -> float:
        """The time at which it is cut off, unless something happens before."""
        patience_s = self.crowd.patience_s
        ends = float("inf")
        if self._head_since is not None:
            ends = self._head_since + patience_s
        elif self._request_since is not None:
            ends = self._request_since + 2 * patience_s
        if self._stuck_since is not None:
            ends = min(ends, self._stuck_since + patience_s)
        if self._left_since is not None:
            ends = min(ends, self._left_since + _LINGER_S)
        return ends
