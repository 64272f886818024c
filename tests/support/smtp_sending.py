"""Mails for the smtp provider, and access to the server that plays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

from carteiro.email.message import make_email
from carteiro.ports import Parcel
from carteiro.providers.smtp.provider import SmtpProvider
from carteiro.providers.smtp.settings import SmtpSettings
from support.provider_settings import usual
from support.sending import SENDER
from support.smtp_server import EXTENSIONS, HOST, Plays, SmtpServer, an_smtp_server
from support.working import a_parcel


def options_for(server: SmtpServer, **changes: Any) -> SmtpSettings:
    """Options for this server, without encryption; ``changes`` are fields of `SmtpSettings`."""
    server_fields = {"host": HOST, "port": server.port, "tls": "none"}
    fields = server_fields | {"default_from": SENDER, "hello_name": "here.test"}
    return usual(SmtpSettings, **(fields | changes))


@asynccontextmanager
async def a_provider(server: SmtpServer, **changes: Any) -> AsyncIterator[SmtpProvider]:
    """The provider for this server; ``changes`` are fields of `SmtpSettings`."""
    provider = SmtpProvider(options_for(server, **changes))
    try:
        yield provider
    finally:
        await provider.close()


@asynccontextmanager
async def a_relay(
    plays: Plays | None = None,
    *,
    extensions: tuple[str, ...] = EXTENSIONS,
    starttls: SSLContext | None = None,
    implicit: SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[tuple[SmtpServer, SmtpProvider]]:
    """A server that plays, and the provider that calls it; ``options`` are fields of `SmtpSettings`."""
    played = an_smtp_server(plays, extensions=extensions, starttls=starttls, implicit=implicit)
    async with played as server, a_provider(server, **options) as provider:
        yield server, provider


def a_large_mail() -> Parcel:
    """A mail of more bytes than the socket buffers hold."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return a_parcel(email.model_copy(update={"text": f"{'0123456789abcde' * 5}\n" * 210_000}))
