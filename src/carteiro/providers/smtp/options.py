"""How a relay is reached."""

import ssl
from datetime import timedelta
from enum import StrEnum

from carteiro.model import value


class Tls(StrEnum):
    """When the connection is encrypted; what is asked for is required, never merely tried."""

    NONE = "none"
    STARTTLS = "starttls"
    IMPLICIT = "implicit"


@value
class SmtpOptions:
    """One relay, who we are to it, and how long it may take.

    Empty: ``ca_file`` the system's authorities, ``username`` no AUTH, ``hello_name`` this host's own,
    ``default_from`` every e-mail names its sender itself.
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
        """Without the password, which must not get into a log by way of an error."""
        return f"SmtpOptions({self.host}:{self.port}, {self.tls})"

    def tls_context(self) -> ssl.SSLContext | None:
        """What certificates are checked against; None without encryption. Raises OSError on a bad file."""
        if self.tls is Tls.NONE:
            return None
        return ssl.create_default_context(cafile=self.ca_file or None)
