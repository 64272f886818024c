"""An SMTP server on a real socket that works or fails at any stage, as a test says."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

CRLF = b"\r\n"
HOST = "127.0.0.1"
USER, PASSWORD = "ana", "geheim-5e1f"
EXTENSIONS = ("PIPELINING", "SIZE 2000000", "8BITMIME", "SMTPUTF8")


# --- failures ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Say:
    """Answer just this, line ends included; empty: not even a line."""

    text: str


@dataclass(frozen=True)
class Drop:
    """Send this, if anything, and close the connection."""

    text: str = ""


@dataclass(frozen=True)
class Stall:
    """Write and read nothing more, until the client gives up."""


@dataclass(frozen=True)
class SayLate:
    """Answer this when the test says so, with or without a listener."""

    text: str
    at: asyncio.Event


Act = Say | Drop | Stall | SayLate
Plays = Mapping[str, "Act | list[Act]"]  # by stage: each time, or one by one and then as is right


@dataclass
class Envelope:
    """The commands of a client before the mail."""

    sender: str
    recipients: list[str] = field(default_factory=list)
    content: bytes = b""
    parameters: str = ""


class _Hangs(Exception):
    """The connection is over."""


# --- the server -------------------------------------------------------------------------------


class SmtpServer:
    """Counts its connections, keeps accepted mails, and remembers every command.

    The stages: greeting, EHLO, STARTTLS, TLS, AUTH, MAIL, RCPT, ``RCPT address``, DATA, body (as the
    first bytes of it came), dot, RSET, NOOP, QUIT.
    """

    def __init__(
        self,
        plays: Plays | None = None,
        *,
        extensions: tuple[str, ...] = EXTENSIONS,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.plays = {
            stage: list(act) if isinstance(act, list) else act
            for stage, act in (plays or {}).items()
        }
        self.extensions = extensions
        self.context = context
        self.port = 0
        self.connections = 0
        self.closed = 0
        self.commands: list[str] = []
        self.mails: list[Envelope] = []
        self.on_mail: Callable[[Envelope], None] = self.mails.append
        self.changed = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()

    def said(self, verb: str) -> int:
        """Number of times that a client sent this command."""
        return sum(command.upper().startswith(verb) for command in self.commands)

    def say_unasked(self, text: str) -> None:
        """Send something to every connected client."""
        for writer in self._writers:
            writer.write(text.encode())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after each action of the server."""
        async with asyncio.timeout(10):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one client, until either side closes."""
        self.connections += 1
        self._writers.add(writer)
        talk = _Talk(self, reader, writer)
        try:
            await talk.run()
        except (_Hangs, ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                writer.close()
            self._writers.discard(writer)
            self.closed += 1
            self.changed.set()

    def act(self, stage: str) -> Act | None:
        """The failure to play at this stage, if any."""
        act = self.plays.get(stage)
        if isinstance(act, list):
            return act.pop(0) if act else None
        return act


class _Talk:
    def __init__(
        self, server: SmtpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self.envelope: Envelope | None = None
        self.is_encrypted = False

    async def run(self) -> None:
        await self.answer("greeting", "220 mail.test ESMTP")
        while line := await self.reader.readline():
            command = line.rstrip(CRLF).decode()
            self.server.commands.append(command)
            self.server.changed.set()
            await self.obey(command)

    async def obey(self, command: str) -> None:
        match command.partition(" ")[0].upper():
            case "EHLO":
                await self.answer("EHLO", self.offer())
            case "STARTTLS":
                await self.start_tls()
            case "AUTH":
                await self.authenticate(command)
            case "MAIL":
                await self.mail(command)
            case "RCPT":
                await self.rcpt(command)
            case "DATA":
                await self.data()
            case "RSET" | "NOOP" as verb:
                self.envelope = None
                await self.answer(verb, "250 2.0.0 Ok")
            case "QUIT":
                await self.answer("QUIT", "221 2.0.0 Bye")
                raise _Hangs
            case _:
                await self.say("500 5.5.1 What?\r\n")

    def offer(self) -> str:
        extensions = list(self.server.extensions)
        if self.is_encrypted:
            extensions.remove("STARTTLS")
        lines = ["mail.test", *extensions]
        last = lines.pop()
        return "\r\n".join([*(f"250-{line}" for line in lines), f"250 {last}"])

    async def start_tls(self) -> None:
        await self.answer("STARTTLS", "220 2.0.0 Go ahead")
        assert self.server.context is not None
        await self.played("TLS")
        await self.writer.start_tls(self.server.context)
        self.is_encrypted = True

    async def authenticate(self, command: str) -> None:
        words = command.split(" ")
        if words[1] == "PLAIN":
            given = base64.b64decode(words[2]).decode().split("\0")[1:]
        else:
            given = [await self.challenged("VXNlcm5hbWU6"), await self.challenged("UGFzc3dvcmQ6")]
        is_right = given == [USER, PASSWORD]
        right, wrong = "235 2.7.0 Ok", "535 5.7.8 Authentication credentials invalid"
        await self.answer("AUTH", right if is_right else wrong)

    async def challenged(self, challenge: str) -> str:
        await self.answer("challenge", f"334 {challenge}")
        return base64.b64decode(await self.reader.readline()).decode()

    async def mail(self, command: str) -> None:
        sender, _, parameters = command.partition("<")[2].partition(">")
        reply = await self.answer("MAIL", "250 2.1.0 Ok")
        if reply.startswith("250"):
            self.envelope = Envelope(sender, parameters=parameters.strip())

    async def rcpt(self, command: str) -> None:
        recipient = command.partition("<")[2].partition(">")[0]
        right = "250 2.1.5 Ok" if self.envelope else "503 5.5.1 Need MAIL first"
        stage = f"RCPT {recipient}" if f"RCPT {recipient}" in self.server.plays else "RCPT"
        reply = await self.answer(stage, right)
        if self.envelope and reply.startswith("250"):
            self.envelope.recipients.append(recipient)

    async def data(self) -> None:
        is_ready = self.envelope is not None and self.envelope.recipients
        reply = await self.answer("DATA", "354 Go on" if is_ready else "503 5.5.1 Need RCPT first")
        if not reply.startswith("354"):
            return
        content = [await self.line()]
        await self.played("body")
        while content[-1] != b".\r\n":
            content.append(await self.line())
        envelope, self.envelope = self.envelope, None
        taken = b"".join(line.removeprefix(b".") for line in content[:-1])
        number = len(self.server.mails) + 1
        act = self.server.act("dot")
        is_refused = isinstance(act, Say | Drop) and act.text.startswith(("4", "5"))
        if envelope is not None and not is_refused:  # accepted, with any answer
            envelope.content = taken
            self.server.on_mail(envelope)
            self.server.changed.set()
        if await self.perform(act) is None:
            await self.say(f"250 2.0.0 Ok: queued as Q{number:04}\r\n")

    async def line(self) -> bytes:
        line = await self.reader.readline()
        if not line:
            raise _Hangs
        return line

    # --- answering

    async def answer(self, stage: str, right: str) -> str:
        """Answer correctly, or play; the answer."""
        played = await self.played(stage)
        if played is not None:
            return played
        await self.say(f"{right}\r\n")
        return right

    async def played(self, stage: str) -> str | None:
        return await self.perform(self.server.act(stage))

    async def perform(self, act: Act | None) -> str | None:
        match act:
            case None:
                return None
            case Say(text):
                await self.say(text)
                return text
            case Drop(""):
                self.writer.transport.abort()  # an encrypted one would read on until all has come
                raise _Hangs
            case Drop(text):
                await self.say(text)
                raise _Hangs
            case SayLate(text, at):
                await at.wait()
                await self.say(text)
                return text
            case Stall():
                await self.reader.read()  # until the client closes
                raise _Hangs

    async def say(self, text: str) -> None:
        if text:
            self.writer.write(text.encode("utf-8", "surrogateescape"))
            await self.writer.drain()


@asynccontextmanager
async def serving(
    server: SmtpServer, *, implicit: ssl.SSLContext | None = None
) -> AsyncIterator[SmtpServer]:
    """The server, listening on a separate port until the block ends."""
    listener = await asyncio.start_server(server.serve, HOST, 0, ssl=implicit)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        await server.until(lambda: server.closed == server.connections)
        await listener.wait_closed()


@asynccontextmanager
async def an_smtp_server(
    plays: Plays | None = None,
    *,
    extensions: tuple[str, ...] = EXTENSIONS,
    starttls: ssl.SSLContext | None = None,
    implicit: ssl.SSLContext | None = None,
) -> AsyncIterator[SmtpServer]:
    """A server that plays; ``starttls`` offers that, ``implicit`` encrypts from the start."""
    if starttls is not None:
        extensions = (*extensions, "STARTTLS")
    async with serving(
        SmtpServer(plays, extensions=extensions, context=starttls), implicit=implicit
    ) as server:
        yield server
