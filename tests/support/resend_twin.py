"""Resend's REST API on loopback: its checks, answers and memory, and its possible failures.

Written from its documentation: the errors by name and status, idempotency keys that are kept for a day
and compared with the request, limits in headers. Run as a program it prints its port, takes the
key from its environment (``RESEND_API_KEY``), and ends with its input; ``GET /twin/deliveries`` lists its
deliveries.
"""

import asyncio
import binascii
import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import orjson
import uvloop

HOST = "127.0.0.1"
KEPT_SECONDS = 24 * 60 * 60.0

_ADDRESS = re.compile(r"(?:[^<>]*<)?[^@\s<>]+@([^@\s<>]+\.[^@\s<>]+)>?")
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_REASONS = {200: "OK", 400: "Bad Request", 429: "Too Many Requests", 500: "Internal Server Error"}

# Every documented error: its status, and a text like the one that goes with it.
ERRORS: Mapping[str, tuple[int, str]] = {
    "invalid_idempotency_key": (400, "The key must be between 1-256 chars."),
    "validation_error": (400, "We found an error with one or more fields in the request."),
    "missing_api_key": (401, "Missing API key in the authorization header."),
    "restricted_api_key": (401, "This API key is restricted to only send emails."),
    "invalid_api_key": (403, "API key is invalid."),
    "suspended_api_key": (403, "API key is suspended."),
    "not_found": (404, "The requested endpoint does not exist."),
    "method_not_allowed": (405, "Method is not allowed for the requested path."),
    "invalid_idempotent_request": (409, "Same idempotency key used with a different payload."),
    "concurrent_idempotent_requests": (409, "The original request is still in progress."),
    "invalid_attachment": (422, "Attachment must have either a `content` or `path`."),
    "invalid_from_address": (422, "Invalid `from` field."),
    "invalid_access": (422, "Access must be full_access or sending_access."),
    "invalid_parameter": (422, "The parameter must be a valid UUID."),
    "invalid_region": (422, "Region must be one of the known ones."),
    "missing_required_field": (422, "The request body is missing one or more required fields."),
    "monthly_quota_exceeded": (429, "You have reached your monthly email sending quota."),
    "daily_quota_exceeded": (429, "You have reached your daily email sending quota."),
    "rate_limit_exceeded": (429, "Too many requests."),
    "security_error": (451, "We may have found a security issue with the request."),
    "application_error": (500, "An unexpected error occurred."),
    "internal_server_error": (500, "An unexpected error occurred."),
}


# --- failures -----------------------------------------------------------------------------------


class Say(NamedTuple):
    """Answer this error; ``accepts``: although the mail was accepted."""

    name: str
    accepts: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class SayRaw(NamedTuple):
    """Answer these bytes, as a proxy in between might."""

    status: int
    body: bytes
    accepts: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class Drop(NamedTuple):
    """Close the connection without an answer; ``accepts``: after the mail was accepted."""

    accepts: bool = False


class DropUnread(NamedTuple):
    """Close the connection after the headers, before the body is read."""


class Stall(NamedTuple):
    """Never answer; ``accepts``: although the mail was accepted. Until the client gives up the key is in progress."""

    accepts: bool = False


Act: TypeAlias = Say | SayRaw | Drop | DropUnread | Stall


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Delivery(NamedTuple):
    """An accepted mail."""

    id: str
    key: str
    letter: dict[str, Any]


class _Refusal(Exception):
    """The answer is an error."""

    def __init__(self, name: str, message: str = "", status: int = 0) -> None:
        usual, words = ERRORS[name]
        self.status = status or usual
        self.document = {"statusCode": self.status, "name": name, "message": message or words}
        super().__init__(name)


# --- state --------------------------------------------------------------------------------------


@dataclass
class ResendTwin:
    """An account: its key, its domains, its limits, and its deliveries."""

    api_key: str = field(default_factory=lambda: f"re_{uuid4().hex}")
    domains: frozenset[str] = frozenset({"example.com"})
    unverified: dict[str, str] = field(default_factory=dict)  # domains, and their status
    may_only_send: bool = False
    per_second: int | None = None
    per_day: int | None = None
    per_month: int | None = None
    clock: Callable[[], float] = time.monotonic
    acts: deque[Act | None] = field(default_factory=deque)  # one for each mail that comes
    deliveries: list[Delivery] = field(default_factory=list)
    on_mail: Callable[[Delivery], object] = lambda _: None
    requests: list[Request] = field(default_factory=list)
    remembers_requests: bool = True
    port: int = 0
    _keys: dict[str, tuple[bytes, str, float]] = field(default_factory=dict)
    _in_progress: set[str] = field(default_factory=set)
    _window: tuple[float, int] = (0.0, 0)
    _heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    @property
    def per_key(self) -> Counter[str]:
        """Number of deliveries of each key."""
        return Counter(each.key for each in self.deliveries)

    def act(self) -> Act | None:
        """The failure to play at the next mail, if any."""
        return self.acts.popleft() if self.acts else None

    async def heard(self, count: int) -> None:
        """Wait until this many whole requests have come."""
        async with self._heard:
            await self._heard.wait_for(lambda: len(self.requests) >= count)

    async def note(self, request: Request) -> None:
        """Remember the request."""
        if self.remembers_requests:
            async with self._heard:
                self.requests.append(request)
                self._heard.notify_all()

    # --- checks

    def check_caller(self, request: Request) -> None:
        """Check the key and the rate limit."""
        given = request.headers.get("authorization", "")
        if not given.startswith("Bearer "):
            raise _Refusal("missing_api_key")
        if given != f"Bearer {self.api_key}":
            raise _Refusal("invalid_api_key")

    def limit_headers(self) -> list[tuple[str, str]]:
        """Count a request against the limit of a second, and return what is left."""
        if self.per_second is None:
            return []
        now = self.clock()
        start, count = self._window
        if now >= start + 1:
            start, count = now, 0
        self._window = (start, count + 1)
        reset = max(0.0, start + 1 - now)
        told = [
            ("ratelimit-limit", str(self.per_second)),
            ("ratelimit-remaining", str(max(0, self.per_second - count - 1))),
            ("ratelimit-reset", f"{reset:.3f}"),
        ]
        return [*told, ("retry-after", f"{reset:.3f}")] if count >= self.per_second else told

    def _check_quota(self) -> None:
        sent = len(self.deliveries)
        if self.per_day is not None and sent >= self.per_day:
            raise _Refusal("daily_quota_exceeded")
        if self.per_month is not None and sent >= self.per_month:
            raise _Refusal("monthly_quota_exceeded")

    def replayed(self, key: str, body: bytes) -> str | None:
        """The id that a key stands for, if it is known."""
        if not 1 <= len(key) <= 256:
            raise _Refusal("invalid_idempotency_key")
        if key in self._in_progress:
            raise _Refusal("concurrent_idempotent_requests")
        first, identity, at = self._keys.get(key, (b"", "", -KEPT_SECONDS))
        if self.clock() - at >= KEPT_SECONDS:
            return None
        if first != body:
            raise _Refusal("invalid_idempotent_request")
        return identity

    def judged(self, body: bytes) -> dict[str, Any]:
        """The mail, if it is valid."""
        letter = _object(body)
        for name in ("from", "to", "subject"):
            if not letter.get(name):
                raise _Refusal("missing_required_field", f"Missing `{name}` field.")
        sender = _ADDRESS.fullmatch(str(letter["from"]))
        if sender is None:
            raise _Refusal("invalid_from_address")
        if sender[1].lower() not in self.domains:
            raise _Refusal("validation_error", f"The {sender[1]} domain is not verified.", 403)
        _check_recipients(letter)
        if not (letter.get("html") or letter.get("text")):
            raise _Refusal("validation_error", "Missing `html` or `text` field.", 422)
        _check_tags(letter.get("tags", []))
        _check_attachments(letter.get("attachments", []))
        self._check_quota()
        return letter

    def take(self, key: str, body: bytes, letter: dict[str, Any]) -> str:
        """Deliver the mail, and remember its key."""
        identity = str(uuid4())
        delivery = Delivery(identity, key, letter)
        self.deliveries.append(delivery)
        self.on_mail(delivery)
        if key:
            self._keys[key] = (body, identity, self.clock())
        return identity

    def begin(self, key: str) -> None:
        """A call of this key is in progress."""
        self._in_progress.add(key)

    def end(self, key: str) -> None:
        """The call of this key has ended."""
        self._in_progress.discard(key)


def _object(body: bytes) -> dict[str, Any]:
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _Refusal("validation_error", "The body is not JSON.") from None
    if not isinstance(told, dict):
        raise _Refusal("validation_error", "The body is not an object.")
    return told


def _check_recipients(letter: Mapping[str, Any]) -> None:
    for name in ("to", "cc", "bcc", "reply_to"):
        given = letter.get(name, [])
        listed = [given] if isinstance(given, str) else given
        if len(listed) > 50 or not all(_ADDRESS.fullmatch(str(each)) for each in listed):
            raise _Refusal("validation_error", f"Invalid `{name}` field.", 422)
        if not all(str(each).isascii() for each in listed):
            raise _Refusal("validation_error", f"Invalid `{name}` field: not ASCII.", 422)


def _check_tags(tags: Iterable[Mapping[str, str]]) -> None:
    for tag in tags:
        if not (_TAG.fullmatch(tag.get("name", "")) and _TAG.fullmatch(tag.get("value", ""))):
            raise _Refusal("validation_error", "Tags should only contain ASCII letters, …", 422)


def _check_attachments(files: Iterable[Mapping[str, str]]) -> None:
    for file in files:
        try:
            binascii.a2b_base64(file["content"], strict_mode=True)
        except (KeyError, ValueError):
            raise _Refusal("invalid_attachment") from None


# --- answers ------------------------------------------------------------------------------------


async def _served(
    twin: ResendTwin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the requests of one connection, until either side closes."""
    while request := await _read(twin, reader):
        await twin.note(request)
        answer = await _answer(twin, request, reader)
        if answer is None:
            return
        writer.write(answer)
        await writer.drain()


async def _read(twin: ResendTwin, reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.split(":", 1) for line in lines if line)
        headers = {name.lower(): text.strip() for name, text in pairs}
        if twin.acts and isinstance(twin.acts[0], DropUnread):
            twin.acts.popleft()
            return None
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Request(method, path, headers, body)


async def _answer(twin: ResendTwin, request: Request, reader: asyncio.StreamReader) -> bytes | None:
    """The answer to a request; None: nothing, and the connection is closed."""
    if not request.headers.get("user-agent"):
        return _written(403, b"error code: 1010")
    if request.path == "/twin/deliveries":
        return _document(200, [each._asdict() for each in twin.deliveries])
    limits: list[tuple[str, str]] = []
    try:
        return await _routed(twin, request, reader, limits)
    except _Refusal as refusal:
        return _document(refusal.status, refusal.document, limits)


async def _routed(
    twin: ResendTwin,
    request: Request,
    reader: asyncio.StreamReader,
    limits: list[tuple[str, str]],
) -> bytes | None:
    twin.check_caller(request)
    limits += twin.limit_headers()
    if any(name == "retry-after" for name, _ in limits):
        raise _Refusal("rate_limit_exceeded")
    if request.path == "/domains" and request.method == "GET":
        return _domains(twin, limits)
    if request.path != "/emails":
        raise _Refusal("not_found")
    if request.method != "POST":
        raise _Refusal("method_not_allowed")
    return await _email(twin, request, reader, limits)


def _domains(twin: ResendTwin, limits: list[tuple[str, str]]) -> bytes:
    if twin.may_only_send:
        raise _Refusal("restricted_api_key")
    listed = [{"name": name, "status": "verified"} for name in sorted(twin.domains)]
    listed += [{"name": name, "status": status} for name, status in twin.unverified.items()]
    return _document(200, {"data": listed}, limits)


async def _email(
    twin: ResendTwin,
    request: Request,
    reader: asyncio.StreamReader,
    limits: list[tuple[str, str]],
) -> bytes | None:
    key = request.headers.get("idempotency-key", "")
    known = twin.replayed(key, request.body) if "idempotency-key" in request.headers else None
    if known is not None:
        return _document(200, {"id": known}, limits)
    letter = twin.judged(request.body)
    act = twin.act()
    if act is None or isinstance(act, DropUnread):
        return _document(200, {"id": twin.take(key, request.body, letter)}, limits)
    if isinstance(act, Stall):
        twin.begin(key)
        await reader.read()  # until the other side gives up
        twin.end(key)
    if act.accepts:
        twin.take(key, request.body, letter)
    return _played(act, limits)


def _played(act: Act, limits: list[tuple[str, str]]) -> bytes | None:
    match act:
        case Say(name, _, headers):
            refusal = _Refusal(name)
            return _document(refusal.status, refusal.document, [*limits, *headers])
        case SayRaw(status, body, _, headers):
            return _written(status, body, [*limits, *headers])
        case _:
            return None


def _document(status: int, told: object, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    more = [("content-type", "application/json"), *headers]
    return _written(status, orjson.dumps(told), more)


def _written(status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers)
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Answer')}\r\n{lines}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


# --- running it ---------------------------------------------------------------------------------


@asynccontextmanager
async def serving(twin: ResendTwin) -> AsyncIterator[ResendTwin]:
    """The twin, listening; open requests are cut off at the end."""
    talking: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talking.add(task)
        try:
            await _served(twin, reader, writer)
        except ConnectionError:
            pass  # the other side is gone
        finally:
            talking.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(talk, HOST, twin.port)
    twin.port = server.sockets[0].getsockname()[1]
    try:
        yield twin
    finally:
        server.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        await server.wait_closed()


async def _main() -> None:
    # It is kept busy: requests are not remembered, only deliveries.
    twin = ResendTwin(api_key=os.environ["RESEND_API_KEY"], remembers_requests=False)
    async with serving(twin):
        os.write(1, f"{twin.port}\n".encode())
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(_main())
