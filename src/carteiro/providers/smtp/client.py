"""The client's half of SMTP: a session with a relay, and one mail through it.

Its life: `open` connects, encrypts and authenticates as asked; `send` any number of mails, one at a
time; `quit` or `abort`. It may carry another mail only while `is_usable`: a failure, timeout or
cancellation within one makes it unusable, because replies could no longer be assigned.
"""

import asyncio
import binascii
import socket
import ssl
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from carteiro.model import Failure, Taken
from carteiro.ports.provider import Handover
from carteiro.providers.smtp import failures
from carteiro.providers.smtp.failures import Reply, Stage
from carteiro.providers.smtp.queue_id import queue_id
from carteiro.providers.smtp.settings import SmtpSettings
from carteiro.providers.smtp.wire import Wire

_READY, _GO_ON, _CHALLENGE, _AUTHENTICATED, _CLOSING = 220, 354, 334, 235, 421
_PIECE = 64 * 1024  # bytes
_RSET, _DATA = (Stage.RSET, b"RSET\r\n"), (Stage.DATA, b"DATA\r\n")
_WELL = [250, 250, _GO_ON]  # the usual replies to an envelope without copies
_QUIT, _DOT = b"QUIT\r\n", b".\r\n"
_END = (Stage.REPLY,)


class Letter(NamedTuple):
    """A mail and its envelope; addresses as mail carries them, ``copies`` also as they were given."""

    sender: str
    to: str
    copies: Sequence[tuple[str, str]]  # given, carried
    content: bytes  # begins with a header, ends with a line's end
    is_international: bool


class Connection:
    """A session with a relay."""

    def __init__(self, wire: Wire, options: SmtpSettings) -> None:
        self._wire = wire
        self._options = options
        self._extensions: Mapping[str, str] = {}
        self._has_pipelining = self._has_size = False
        self._largest = inf  # bytes of a mail
        self._command_s = options.command_limit.total_seconds()
        self._reply_s = options.reply_limit.total_seconds()
        self._is_between_mails = False
        self._needs_reset = False
        self.mails = 0  # begun over it

    @classmethod
    async def open(cls, options: SmtpSettings, context: ssl.SSLContext | None) -> "Connection":
        """Connect, and do all that comes before the first mail."""
        connection = cls(await _connected(options, context), options)
        try:
            await connection._start(context)
        except BaseException:
            connection.abort()
            raise
        return connection

    @property
    def is_usable(self) -> bool:
        """True if it can carry another mail, as far as known."""
        return self._is_between_mails and self._wire.is_quiet

    # --- before the first mail

    async def _start(self, context: ssl.SSLContext | None) -> None:
        [greeting] = await self._wire.replies((Stage.GREETING,), self._command_s)
        if greeting.code != _READY:
            raise self._said(Stage.GREETING, greeting)
        await self._hello()
        if self._options.tls == "starttls" and context is not None:
            await self._start_tls(context)
            await self._hello()  # what was said before it may have been said by anybody
        if self._options.username:
            await self._authenticate()
        self._is_between_mails = True

    async def _hello(self) -> None:
        name = self._options.hello_name or _own_name(self._wire)
        reply = await self._ask(Stage.EHLO, f"EHLO {name}")
        if not reply.is_positive:
            raise self._said(Stage.EHLO, reply)
        lines = [line[4:].upper().partition(" ") for line in reply.text.split("\n")[1:]]
        self._extensions = {keyword: parameters for keyword, _, parameters in lines}
        self._has_pipelining = "PIPELINING" in self._extensions
        self._has_size = "SIZE" in self._extensions
        limit = self._extensions.get("SIZE", "")
        self._largest = (int(limit) if limit.isdecimal() else 0) or inf

    async def _start_tls(self, context: ssl.SSLContext) -> None:
        if "STARTTLS" not in self._extensions:
            raise failures.unfit(Stage.STARTTLS, "TLS_ERROR", "The relay does not offer STARTTLS")
        reply = await self._ask(Stage.STARTTLS, "STARTTLS")
        if reply.code != _READY:
            raise self._said(Stage.STARTTLS, reply)
        if not self._wire.is_quiet:  # or it would count as said under encryption
            raise failures.nonsense(Stage.STARTTLS, "more came than the reply")
        limit = self._options.connect_limit.total_seconds()
        try:
            async with asyncio.timeout(limit):
                transport = await asyncio.get_running_loop().start_tls(
                    self._wire.transport, self._wire, context, server_hostname=self._options.host
                )
        except (OSError, TimeoutError) as error:
            raise _not_connected(error, Stage.STARTTLS) from error
        if transport is None:
            raise failures.gone(Stage.STARTTLS, "the relay closed the connection")
        self._wire.upgrade(transport)

    async def _authenticate(self) -> None:
        mechanisms = self._extensions.get("AUTH", "").split()
        user, password = self._options.username, self._options.password
        if "PLAIN" in mechanisms:
            lines = [f"AUTH PLAIN {_base64(chr(0).join(('', user, password)))}"]
        elif "LOGIN" in mechanisms:
            lines = ["AUTH LOGIN", _base64(user), _base64(password)]
        else:
            reason = "The relay offers neither AUTH PLAIN nor AUTH LOGIN"
            raise failures.unfit(Stage.AUTH, "AUTH_ERROR", reason)
        *first, last = lines
        for line in first:
            await self._authenticate_by(line, _CHALLENGE)
        await self._authenticate_by(last, _AUTHENTICATED)

    async def _authenticate_by(self, line: str, expected: int) -> None:
        reply = await self._ask(Stage.AUTH, line)
        if reply.code != expected:
            raise self._said(Stage.AUTH, reply)

    def _said(self, stage: Stage, reply: Reply) -> failures.SmtpError:
        return failures.said(stage, reply, self._options.host)

    async def _ask(self, stage: Stage, line: str) -> Reply:
        self._wire.write(f"{line}\r\n".encode())
        [reply] = await self._wire.replies((stage,), self._command_s)
        return reply

    # --- a mail

    async def send(self, letter: Letter, handover: Handover) -> Taken:
        """Hand the letter over; raises `SmtpError` if the relay does not take it."""
        self._refuse_unfit(letter)
        self._is_between_mails = False
        self.mails += 1
        refused = await self._open_envelope(letter)
        last = await self._send_body(letter.content)
        handover.begin()
        self._needs_reset = False
        self._wire.write(last + _DOT)
        handover.await_reply(self._options.reply_limit)
        [reply] = await self._wire.replies(_END, self._reply_s)
        if not reply.is_positive and not reply.is_refusal:
            raise failures.nonsense(Stage.REPLY, reply.text)
        self._is_between_mails = reply.code != _CLOSING
        if reply.is_refusal:
            raise self._said(Stage.REPLY, reply)
        return Taken(queue_id(reply.text), refused)

    def _refuse_unfit(self, letter: Letter) -> None:
        """Refuse a mail that the relay cannot take, by its EHLO answer."""
        if letter.is_international and "SMTPUTF8" not in self._extensions:
            raise failures.SmtpError(Stage.MAIL, failures.NOT_INTERNATIONAL)
        if len(letter.content) > self._largest:
            failure = failures.too_big(len(letter.content), int(self._largest))
            raise failures.SmtpError(Stage.MAIL, failure)

    async def _open_envelope(self, letter: Letter) -> tuple[tuple[str, Failure], ...]:
        """Have sender and recipients accepted; the copies that were refused, and why.

        With copies, DATA waits for the answers: a relay may accept it for the copies alone, and then
        there would be no way back but to break the connection.
        """
        reset = [_RSET] if self._needs_reset else []
        sender, to = (Stage.MAIL, self._mail_from(letter)), (Stage.RCPT, _rcpt_to(letter.to))
        needed = [*reset, sender, to]  # or there is no mail
        rest = [(Stage.RCPT, _rcpt_to(carried)) for _, carried in letter.copies] or [_DATA]
        replies = await self._exchange([*needed, *rest], len(needed))
        if not letter.copies and [reply.code for reply in replies] == _WELL:
            return ()
        for (stage, _), reply in zip(needed, replies, strict=False):
            if not reply.is_positive:
                self._leave(replies)
                raise self._said(stage, reply)
        [data] = await self._exchange([_DATA], 1) if letter.copies else replies[-1:]
        if data.code != _GO_ON:
            self._leave([data])
            raise self._said(Stage.DATA, data)
        if not letter.copies:
            return ()
        return tuple(
            (given, failures.refusal_of(reply, self._options.host))
            for (given, _), reply in zip(letter.copies, replies[len(needed) :], strict=False)
            if not reply.is_positive
        )

    def _mail_from(self, letter: Letter) -> bytes:
        line = f"MAIL FROM:<{letter.sender}>"
        if self._has_size:
            line += f" SIZE={len(letter.content)}"
        if letter.is_international:
            line += " BODY=8BITMIME SMTPUTF8"
        return f"{line}\r\n".encode()

    async def _exchange(self, commands: Sequence[tuple[Stage, bytes]], needed: int) -> list[Reply]:
        """The replies to the commands, up to one after which there is nothing more to be had.

        Without pipelining that is also a "no" to one of the ``needed`` first, which makes the rest pointless.
        """
        if self._has_pipelining:
            self._wire.write(b"".join([command for _, command in commands]))
            return await self._wire.replies([stage for stage, _ in commands], self._command_s)
        replies: list[Reply] = []
        for stage, command in commands:
            self._wire.write(command)
            replies += await self._wire.replies((stage,), self._command_s)
            is_pointless = len(replies) <= needed and not replies[-1].is_positive
            if is_pointless or replies[-1].code == _CLOSING:
                break
        return replies

    def _leave(self, replies: Sequence[Reply]) -> None:
        """Give a mail up before its body; the relay forgets what it knows of it when the next one begins."""
        awaits_body = any(reply.code == _GO_ON for reply in replies)
        is_closing = any(reply.code == _CLOSING for reply in replies)
        self._needs_reset = True
        self._is_between_mails = not awaits_body and not is_closing

    async def _send_body(self, content: bytes) -> bytes:
        """Send all but the last piece, and return that: until it is sent with its end, nothing is handed over.

        It goes in pieces, as an encrypted transport does not see that one large write has not left yet.
        The last piece waits for the end: one write is cheaper than two, and no more is known after two.
        """
        content = content.replace(b"\r\n.", b"\r\n..")
        last = (len(content) - 1) // _PIECE * _PIECE
        for start in range(0, last, _PIECE):
            self._wire.write(content[start : start + _PIECE])
            await self._wire.written(Stage.BODY, self._command_s)
        await self._wire.written(Stage.BODY, self._command_s)
        return content[last:]

    # --- the end

    def quit(self) -> None:
        """End the session; do not wait for the reply to QUIT."""
        if self.is_usable:
            self._wire.write(_QUIT)
        self._wire.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_between_mails = False
        self._wire.abort()

    async def closed(self) -> None:
        """Wait until it is closed."""
        await self._wire.closed()


async def _connected(options: SmtpSettings, context: ssl.SSLContext | None) -> Wire:
    is_implicit = options.tls == "implicit"
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(options.connect_limit.total_seconds()):
            _, wire = await loop.create_connection(
                Wire, options.host, options.port, ssl=context if is_implicit else None
            )
    except (OSError, TimeoutError) as error:
        raise _not_connected(error, Stage.CONNECT) from error
    return wire


def _not_connected(error: BaseException, stage: Stage) -> failures.SmtpError:
    if isinstance(error, TimeoutError):
        return failures.timed_out(stage)
    if isinstance(error, ssl.SSLError):
        return failures.unfit(stage, "TLS_ERROR", f"No encrypted connection to the relay: {error}")
    return failures.gone(stage, str(error))


def _own_name(wire: Wire) -> str:
    """This host's name if it is a full one, else its address; asking for more could take its time."""
    name = socket.gethostname()
    if "." in name and name.isascii():
        return name
    address = wire.transport.get_extra_info("sockname")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _rcpt_to(address: str) -> bytes:
    return f"RCPT TO:<{address}>\r\n".encode()


def _base64(text: str) -> str:
    return binascii.b2a_base64(text.encode(), newline=False).decode()
