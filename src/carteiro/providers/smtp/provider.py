"""Hand e-mail to a relay, one mail at a time over a connection that is kept for the next."""

from carteiro.email.message import Email
from carteiro.email.mime import is_international, mail_address, write_mime
from carteiro.model import Deferred, Outcome, Rejected, Taken, Unknown
from carteiro.ports.provider import Fault, Features, Handover, Parcel, fault_of
from carteiro.providers.letters import written
from carteiro.providers.smtp.client import Connection, Letter
from carteiro.providers.smtp.failures import NAME, ConnectionGone, SmtpError, Stage
from carteiro.providers.smtp.pool import ConnectionPool
from carteiro.providers.smtp.settings import SmtpSettings

_ADVICE = "check the relay, and host, port, tls, username and password of [smtp]"


class SmtpProvider:
    """A relay takes the mail over when it answers the end of it, and not before.

    The same message and revision are the same bytes each time, Message-ID and Date among them.
    """

    name = NAME
    features = Features(is_encrypted=True, names_stage=True, refuses_copies=True, is_relay=True)

    def __init__(self, options: SmtpSettings) -> None:
        self._options = options
        self.connections = options.connections
        self._context = options.tls_context()
        self._pool = ConnectionPool(self._open, options)

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Send the mail to all its recipients; refused copies are reported, not repeated."""
        letter = written(parcel, self.name, self._options.default_from, _letter)
        if isinstance(letter, Rejected):
            return letter
        try:
            return await self._hand_over(letter, handover)
        except SmtpError as error:
            if error.is_unanswered:
                return Unknown(error.failure)
            return Deferred(error.failure) if error.failure.retryable else Rejected(error.failure)

    async def check(self) -> list[Fault]:
        """Problems of the relay, if any: it connects, encrypts and logs in, and sends nothing."""
        try:
            connection = await self._open()
        except SmtpError as error:
            return [fault_of(error.failure, _ADVICE)]
        connection.quit()
        await connection.closed()
        return []

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def _open(self) -> Connection:
        return await Connection.open(self._options, self._context)

    async def _hand_over(self, letter: Letter, handover: Handover, *, fresh: bool = False) -> Taken:
        connection = await self._pool.take(handover, fresh=fresh)
        try:
            return await connection.send(letter, handover)
        except ConnectionGone as error:
            # A relay closes what has been idle for long enough, and may do so as we begin.
            if connection.mails == 1 or error.stage not in {Stage.RSET, Stage.MAIL}:
                raise
        finally:
            self._pool.give_back(connection)
        return await self._hand_over(letter, handover, fresh=True)


def _letter(parcel: Parcel, sender: str) -> Letter:
    """The mail in its envelope: each recipient once."""
    email: Email = parcel.content
    content = write_mime(email, sender=sender, message=parcel.message, revision=parcel.revision)
    from_, to = mail_address(sender), mail_address(email.to)
    if content.isascii() and not email.cc and not email.bcc:  # all its addresses are in there
        return Letter(from_, to, (), content, is_international=False)
    copies = {mail_address(given): given for given in (*email.cc, *email.bcc)}
    copies.pop(to, None)
    named = (from_, to, *copies, *([mail_address(email.reply_to)] if email.reply_to else ()))
    listed = [(given, carried) for carried, given in copies.items()]
    return Letter(from_, to, listed, content, is_international(named))
