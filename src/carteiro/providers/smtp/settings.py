"""The settings of ``smtp``."""

import ssl
from typing import Annotated, Literal

from pydantic import Field

from carteiro.config import Section, values


class SmtpSettings(Section):
    """The relay and its connections; empty texts mean none, or the default.

    ``tls`` is required, never optional. A provider gets them with the password itself, not the reference to it.
    """

    host: values.Text
    port: Annotated[int, Field(ge=1, le=65535)]
    tls: Literal["none", "starttls", "implicit"]
    ca_file: str
    username: str
    password: values.SecretReference
    default_from: values.AddressOrNone
    hello_name: Annotated[
        str, values.shaped(r"[A-Za-z0-9.:\[\]-]*", "a host name, an address in brackets, or empty")
    ]
    connections: values.SomeCount
    messages_per_connection: values.SomeCount
    idle: values.SomeDuration = Field(alias="idle_ms")
    connect_limit: values.SomeDuration = Field(alias="connect_limit_ms")
    command_limit: values.SomeDuration = Field(alias="command_limit_ms")
    reply_limit: values.SomeDuration = Field(alias="reply_limit_ms")
    rate_per_second: values.RatePerSecond
    concurrency: values.Count

    def tls_context(self) -> ssl.SSLContext | None:
        """The TLS context of the relay; None without encryption. Raises OSError on a bad file."""
        if self.tls == "none":
            return None
        return ssl.create_default_context(cafile=self.ca_file or None)
