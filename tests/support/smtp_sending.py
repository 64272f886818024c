"""What tests send through the smtp provider, and how they reach the server that plays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from ssl import SSLContext
from typing import Any

from carteiro.email import make_email
from carteiro.kinds import Kind
from carteiro.model import EMAIL, Deferred, Failure, NotMade, Outcome, Rejected, Taken, Unknown
from carteiro.path.confirm import confirm
from carteiro.path.deliver import deliver
from carteiro.ports import Handover, Parcel, Provider
from carteiro.providers.smtp import SmtpOptions, SmtpProvider, Tls
from support.smtp_server import EXTENSIONS, HOST, Plays, SmtpServer, an_smtp_server
from support.working import GATEWAY, LONG, a_parcel, always

SENDER = "loja@example.com"
SOON = timedelta(milliseconds=250)  # for a server that will never answer; ample for one that does


def options_for(server: SmtpServer, **changes: Any) -> SmtpOptions:
    """How this server is reached, without encryption; ``changes`` are fields of `SmtpOptions`."""
    fields: dict[str, Any] = {"tls": Tls.NONE, "default_from": SENDER, "hello_name": "here.test"}
    return SmtpOptions(HOST, server.port, **(fields | changes))


@asynccontextmanager
async def a_provider(server: SmtpServer, **changes: Any) -> AsyncIterator[SmtpProvider]:
    """The provider for this server; ``changes`` are fields of `SmtpOptions`."""
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
    """A server that plays, and the provider that talks to it; ``options`` are fields of `SmtpOptions`."""
    played = an_smtp_server(plays, extensions=extensions, starttls=starttls, implicit=implicit)
    async with played as server, a_provider(server, **options) as provider:
        yield server, provider


def a_mail(to: str = "ana@example.com", **fields: Any) -> Parcel:
    """A small mail; ``fields`` are those of a request."""
    return a_parcel(make_email({"to": to, "subject": "s", "text": "t"} | fields))


def a_large_mail() -> Parcel:
    """A mail of more bytes than sockets hold on their way."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    return a_parcel(email.model_copy(update={"text": "0123456789abcde\n" * 1_000_000}))


async def sent(
    provider: Provider,
    parcel: Parcel | None = None,
    *,
    limit: timedelta = LONG,
    handover: Handover | None = None,
) -> Outcome:
    """What becomes of a parcel on its way along the path, within the limit of a call."""
    kind = Kind(
        name=EMAIL,
        provider=provider.name,
        confirm=confirm,
        deliver=provider.deliver,
        policy=always(GATEWAY),
        declares=True,
        call_limit=limit,
    )
    return await deliver(kind, parcel or a_mail(), handover or Handover(limit))


def failure_of(outcome: Outcome) -> Failure:
    """What went wrong."""
    assert isinstance(outcome, Rejected | Deferred | NotMade | Unknown), outcome
    return outcome.failure


def id_of(outcome: Outcome) -> str:
    """The relay's id of a mail that it took."""
    assert isinstance(outcome, Taken), outcome
    return outcome.provider_id
