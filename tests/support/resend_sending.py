"""What tests send through the resend provider, and how they reach the twin that plays it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from carteiro.email import make_email
from carteiro.kinds import Kind
from carteiro.model import EMAIL, MessageId, Outcome
from carteiro.path.confirm import confirm
from carteiro.path.deliver import deliver
from carteiro.ports import Handover, Parcel
from carteiro.providers.resend import ResendOptions, ResendProvider
from support.resend_twin import Act, ResendTwin, serving
from support.working import GATEWAY, LONG, a_parcel, always

SENDER = "loja@example.com"
SOON = timedelta(milliseconds=250)  # for a server that will never answer; ample for one that does


@asynccontextmanager
async def a_provider(twin: ResendTwin, **changes: Any) -> AsyncIterator[ResendProvider]:
    """The provider for this twin; ``changes`` are fields of `ResendOptions`."""
    usual = ResendOptions(twin.api_key, twin.url, default_from=SENDER)
    provider = ResendProvider(replace(usual, **changes))
    try:
        yield provider
    finally:
        await provider.close()


@asynccontextmanager
async def an_account(
    *acts: Act | None, options: dict[str, Any] | None = None, **facts: Any
) -> AsyncIterator[tuple[ResendTwin, ResendProvider]]:
    """A twin that plays ``acts``, one a mail, and the provider that talks to it."""
    async with serving(ResendTwin(**facts)) as twin, a_provider(twin, **options or {}) as provider:
        twin.acts.extend(acts)
        yield twin, provider


def a_mail(to: str = "ana@example.com", **fields: Any) -> Parcel:
    """A small mail; ``fields`` are those of a request."""
    return a_parcel(make_email({"to": to, "subject": "s", "text": "t"} | fields))


def again(parcel: Parcel, **changes: Any) -> Parcel:
    """The next attempt of it."""
    return replace(parcel, attempt=parcel.attempt + 1, **changes)


def key_of(message: MessageId, revision: int = 1) -> str:
    """The key that Resend knows a message by."""
    return f"{message}:{revision}"


async def sent(
    provider: ResendProvider, parcel: Parcel | None = None, *, limit: timedelta = LONG
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
    return await deliver(kind, parcel or a_mail(), Handover(limit))
