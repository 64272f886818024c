"""Mails for the resend provider, and access to the twin of Resend."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from carteiro.model import MessageId
from carteiro.ports import Parcel
from carteiro.providers.resend.provider import ResendProvider
from carteiro.providers.resend.settings import ResendSettings
from support.provider_settings import usual
from support.resend_twin import Act, ResendTwin, serving
from support.sending import SENDER


@asynccontextmanager
async def a_provider(twin: ResendTwin, **changes: Any) -> AsyncIterator[ResendProvider]:
    """The provider for this twin; ``changes`` are fields of `ResendSettings`."""
    fields = {"api_key": twin.api_key, "url": twin.url, "default_from": SENDER}
    provider = ResendProvider(usual(ResendSettings, **(fields | changes)))
    try:
        yield provider
    finally:
        await provider.close()


@asynccontextmanager
async def an_account(
    *acts: Act | None, options: dict[str, Any] | None = None, **facts: Any
) -> AsyncIterator[tuple[ResendTwin, ResendProvider]]:
    """A twin that plays ``acts``, one a mail, and the provider that calls it."""
    async with serving(ResendTwin(**facts)) as twin, a_provider(twin, **options or {}) as provider:
        twin.acts.extend(acts)
        yield twin, provider


def again(parcel: Parcel, **changes: Any) -> Parcel:
    """The next attempt of it."""
    return replace(parcel, attempt=parcel.attempt + 1, **changes)


def key_of(message: MessageId, revision: int = 1) -> str:
    """The idempotency key of a message at Resend."""
    return f"{message}:{revision}"
