"""SES on a real socket, as far as it is used here: REST and JSON of its API version 2.

It works, or fails as a test says: refuse, throttle, stall, break off, answer 500 to an accepted
mail. Run by itself it prints its port and ends with its input, or gets a port and ends
by a signal; it may append accepted mails to a file.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import re
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Any, Literal, NoReturn, TypeAlias
from urllib.parse import unquote

HOST = "127.0.0.1"
REGION = "eu-west-1"
KEY_ID, SECRET = "AKIATWIN", "not-a-secret"

_SEND = ("POST", "/v2/email/outbound-emails")
_ACCOUNT = ("GET", "/v2/email/account")
_KEPT = "/v2/email/"
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>\w+)/\d{8}/(?P<region>[\w-]+)/ses/aws4_request, "
    r"SignedHeaders=(?P<signed>[\w;-]+), Signature=[0-9a-f]{64}"
)
_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found"}

ACCOUNT: Mapping[str, Any] = {
    "EnforcementStatus": "HEALTHY",
    "ProductionAccessEnabled": True,
    "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 12.0},
    "SendingEnabled": True,
}


def secret_file(folder: Path) -> Path:
    """The secret of the account, where settings find it."""
    return folder / "secret"


# --- failures ---------------------------------------------------------------------------------

Stage: TypeAlias = Literal["head", "body"]  # its head has come, or the whole request


@dataclass(frozen=True)
class Answer:
    """Answer with this error; ``accepts``: although the mail was accepted."""

    name: str
    status: int = 400
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    accepts: bool = False


@dataclass(frozen=True)
class Say:
    """Answer just these bytes, and close the connection; a whole request was accepted by then."""

    text: bytes
    at: Stage = "body"


@dataclass(frozen=True)
class Drop:
    """Close the connection at this stage; a whole request was accepted by then."""

    at: Stage


@dataclass(frozen=True)
class Stall:
    """Write and read nothing more, until the client gives up; a whole request was accepted by then."""

    at: Stage


Act: TypeAlias = Answer | Say | Drop | Stall


@dataclass(frozen=True)
class Mail:
    """An accepted mail, and its recipients."""

    id: str
    sender: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    tags: dict[str, str]
    configuration_set: str | None
    raw: bytes


class _Hangs(Exception):
    """The connection is over."""


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    headers: Mapping[str, str]


# --- the twin ---------------------------------------------------------------------------------


class SesTwin:
    """Counts its connections and calls, and keeps accepted mails; ``plays`` are for the next calls, one each."""

    def __init__(self, *plays: Act, account: Mapping[str, Any] | Answer = ACCOUNT) -> None:
        self.plays = list(plays)
        self.account = account
        self.configuration_sets: set[str] = set()
        self.paused: set[str] = set()  # of them
        self.identities = {"example.com"}
        self.forbidden: set[str] = set()  # kinds of things without permission to read
        self.unverified: set[str] = set()  # senders
        self.port = 0
        self.connections = 0
        self.closed = 0
        self.calls = 0
        self.mails: list[Mail] = []
        self.on_mail: Callable[[Mail], None] = self.mails.append
        self.changed = asyncio.Event()
        self._over = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after each action of the twin."""
        async with asyncio.timeout(10):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def hang_up(self) -> None:
        """Close every connection from this side, and wait until the clients have, too."""
        for writer in self._writers:
            writer.write_eof()
        await self.until(lambda: self.closed == self.connections)

    async def end(self) -> None:
        """Wait until all clients have closed; stalled ones are released."""
        self._over.set()
        await self.until(lambda: self.closed == self.connections)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client's requests, until either side closes."""
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                await self._answer_one(reader, writer)
        except (_Hangs, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            with contextlib.suppress(ConnectionError):
                writer.close()
                await writer.wait_closed()
            self._writers.discard(writer)
            self.closed += 1
            self.changed.set()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = _head(await reader.readuntil(b"\r\n\r\n"))
        is_send = (request.method, request.path) == _SEND
        self.calls += is_send
        self.changed.set()
        act = self.plays.pop(0) if is_send and self.plays else None
        if act is not None and not isinstance(act, Answer) and act.at == "head":
            await self._break_off(act, reader, writer)
        body = await reader.readexactly(int(request.headers.get("content-length", 0)))
        fault = _unsigned(request)
        if fault is not None:
            writer.write(_error(fault))
        elif is_send:
            writer.write(await self._sent(body, act, reader, writer))
        elif (request.method, request.path) == _ACCOUNT:
            told = self.account
            writer.write(_error(told) if isinstance(told, Answer) else _response(200, told))
        else:
            writer.write(self._looked_up(request))
        await writer.drain()

    def _looked_up(self, request: _Request) -> bytes:
        """A configuration set or an identity, if it exists."""
        kind, _, name = unquote(request.path).removeprefix(_KEPT).partition("/")
        known = {"configuration-sets": self.configuration_sets, "identities": self.identities}
        if request.method != "GET" or kind not in known:
            return _error(Answer("UnknownOperationException", 404))
        if kind in self.forbidden:
            return _error(Answer("AccessDeniedException", 403, "User: arn:… is not authorized"))
        if name not in known[kind]:
            return _error(Answer("NotFoundException", 404, f"{name} does not exist."))
        return _response(
            200,
            {
                "SendingOptions": {"SendingEnabled": name not in self.paused},
                "VerifiedForSendingStatus": name not in self.unverified,
            },
        )

    async def _sent(
        self,
        body: bytes,
        act: Act | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bytes:
        mail = self._judged(body)
        if isinstance(mail, Answer):
            return _error(mail)
        if isinstance(act, Answer) and not act.accepts:
            return _error(act)
        self.on_mail(mail)
        self.changed.set()
        match act:
            case Answer():
                return _error(act)
            case Say() | Drop() | Stall():
                await self._break_off(act, reader, writer)
        return _response(200, {"MessageId": mail.id})

    async def _break_off(
        self, act: Say | Drop | Stall, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> NoReturn:
        if isinstance(act, Say):
            writer.write(act.text)
            await writer.drain()
        elif isinstance(act, Drop):
            writer.transport.abort()
        elif act.at == "head":
            await self._over.wait()  # without reading the body
        else:
            await reader.read()  # until the client closes
        raise _Hangs

    def _judged(self, body: bytes) -> Mail | Answer:
        """The mail, or the reason of the refusal."""
        try:
            asked = json.loads(body)
            raw = base64.b64decode(asked["Content"]["Raw"]["Data"], validate=True)
            there = asked["Destination"]
            sender = asked["FromEmailAddress"]
        except (KeyError, ValueError):
            return Answer("BadRequestException", message="The request is malformed.")
        tags = {each["Name"]: each["Value"] for each in asked.get("EmailTags", ())}
        if not all(map(_TAG.fullmatch, (*tags, *tags.values()))):
            return Answer("BadRequestException", message="Invalid tag name or value.")
        named = asked.get("ConfigurationSetName")
        if named is not None and named not in self.configuration_sets:
            text = f"Configuration set <{named}> does not exist."
            return Answer("NotFoundException", 404, text)
        if sender in self.unverified:
            text = "Email address is not verified. The following identities failed the check"
            return Answer("MessageRejected", message=f"{text}: {sender}")
        to, cc, bcc = (there.get(f"{kind}Addresses", []) for kind in ("To", "Cc", "Bcc"))
        return Mail(str(uuid.uuid4()), sender, to, cc, bcc, tags, named, raw)


def _head(text: bytes) -> _Request:
    line, *rest = text.decode("latin-1").split("\r\n")
    method, path, _ = line.split(" ")
    named = (each.partition(":") for each in rest if each)
    return _Request(method, path, {name.lower(): said.strip() for name, _, said in named})


def _unsigned(request: _Request) -> Answer | None:
    """The fault in the form of the signature, if any."""
    given = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if given is None or "x-amz-date" not in given["signed"].split(";"):
        return Answer("MissingAuthenticationTokenException", 403, "Missing Authentication Token")
    if given["key"] != KEY_ID:
        text = "The security token included in the request is invalid."
        return Answer("UnrecognizedClientException", 403, text)
    if given["region"] != REGION:
        text = f"Credential should be scoped to a valid region, not '{given['region']}'."
        return Answer("SignatureDoesNotMatch", 403, text)
    return None


def _error(answer: Answer) -> bytes:
    named = {"x-amzn-errortype": answer.name} if answer.name else {}
    return _response(answer.status, {"message": answer.message}, {**named, **answer.headers})


def _response(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> bytes:
    content = json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Other')}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        f"x-amzn-RequestId: {uuid.uuid4()}",
        *(f"{name}: {said}" for name, said in (headers or {}).items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


# --- running it -------------------------------------------------------------------------------


@asynccontextmanager
async def a_ses_twin(
    *plays: Act, account: Mapping[str, Any] | Answer = ACCOUNT, context: SSLContext | None = None
) -> AsyncIterator[SesTwin]:
    """A twin that serves while the block runs; ``context``: it speaks TLS."""
    twin = SesTwin(*plays, account=account)
    async with serving(twin, context=context):
        yield twin


@asynccontextmanager
async def serving(
    twin: SesTwin, *, context: SSLContext | None = None, port: int = 0
) -> AsyncIterator[None]:
    """Serve while the block runs; on port 0, the system chooses one."""
    listening = socket.create_server((HOST, port))
    # Little room, so that a large request does not arrive whole before it is read.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    server = await asyncio.start_server(twin.serve, sock=listening, ssl=context)
    twin.port = listening.getsockname()[1]
    try:
        yield
    finally:
        server.close()
        await twin.end()
        await server.wait_closed()


def _kept(path: Path) -> Callable[[Mail], None]:
    def keep(mail: Mail) -> None:
        at = time.time_ns() // 1_000_000
        line = asdict(mail) | {"raw": mail.raw.decode(), "at": at}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    return keep


async def _run(port: int, file: Path | None) -> None:
    twin = SesTwin()
    twin.on_mail = _kept(file) if file else lambda _: None
    async with serving(twin, port=port):
        if port:
            await asyncio.Event().wait()
        sys.stdout.write(f"{twin.port}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--file", type=Path)
    told = parser.parse_args()
    asyncio.run(_run(told.port, told.file))
