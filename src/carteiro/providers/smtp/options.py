"""Options of the SMTP provider."""

import ssl
from datetime import timedelta
from enum import StrEnum

from carteiro.model import value


class Tls(StrEnum):
    """Encryption of the connection; it is required, never optional."""

    NONE = "none"
    STARTTLS = "starttls"
    IMPLICIT = "implicit"


@value
class SmtpOptions:
    """One relay, its credentials and its time limits.

    Empty: ``ca_file`` the system's authorities, ``username`` no AUTH, ``hello_name`` this host's own,
    ``default_from`` every e-mail has a sender.
    """

    host: str
    port: int
    tls: Tls = Tls.STARTTLS
    ca_file: str = ""
    username: str = ""
    password: str = ""
    default_from: str = ""
    hello_name: str = ""
    connections: int = 20
    messages_per_connection: int = 100
    idle: timedelta = timedelta(seconds=15)
    connect_limit: timedelta = timedelta(seconds=10)
    command_limit: timedelta = timedelta(seconds=20)
    reply_limit: timedelta = timedelta(minutes=10)

    def __repr__(self) -> str:
        """Without the password, which must not appear in a log."""
        return f"SmtpOptions({self.host}:{self.port}, {self.tls})"

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context of the relay; None without encryption. Raises OSError on a bad file."""
        if self.tls is Tls.NONE:
            return None
        return ssl.create_default_context(cafile=self.ca_file or None)
