"""The settings of ``smtp``."""

from typing import Annotated, Literal

from pydantic import Field

from carteiro.config import Section
from carteiro.config.values import (
    AddressOrNone,
    Count,
    RatePerSecond,
    SecretReference,
    SomeCount,
    SomeDuration,
    Text,
    shaped,
)


class SmtpSettings(Section):
    """The relay that takes e-mail over, and how it is spoken to; empty texts mean: none, or as usual."""

    host: Text
    port: Annotated[int, Field(ge=1, le=65535)]
    tls: Literal["none", "starttls", "implicit"]
    ca_file: str
    username: str
    password: SecretReference
    default_from: AddressOrNone
    hello_name: Annotated[
        str, shaped(r"[A-Za-z0-9.:\[\]-]*", "a host name, an address in brackets, or empty")
    ]
    connections: SomeCount
    messages_per_connection: SomeCount
    idle: SomeDuration = Field(alias="idle_ms")
    connect_limit: SomeDuration = Field(alias="connect_limit_ms")
    command_limit: SomeDuration = Field(alias="command_limit_ms")
    reply_limit: SomeDuration = Field(alias="reply_limit_ms")
    rate_per_second: RatePerSecond
    concurrency: Count
