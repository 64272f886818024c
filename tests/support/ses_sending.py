"""Access to the twin of SES through the provider."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from carteiro.providers.ses.provider import SesProvider
from carteiro.providers.ses.settings import SesSettings
from support.provider_settings import usual
from support.sending import SENDER
from support.ses_twin import ACCOUNT, KEY_ID, REGION, SECRET, Act, Answer, SesTwin, a_ses_twin


def options_for(url: str, **changes: Any) -> SesSettings:
    """The options for this twin; ``changes`` are fields of `SesSettings`."""
    fields: dict[str, Any] = {
        "region": REGION,
        "endpoint_url": url,
        "access_key_id": KEY_ID,
        "secret_access_key": SECRET,
        "default_from": SENDER,
    }
    return usual(SesSettings, **(fields | changes))


@asynccontextmanager
async def a_provider(url: str, **changes: Any) -> AsyncIterator[SesProvider]:
    """The provider for this twin; ``changes`` are fields of `SesSettings`."""
    provider = SesProvider(options_for(url, **changes), timedelta(seconds=30))
    try:
        yield provider
    finally:
        await provider.close()


@asynccontextmanager
async def an_account(
    *plays: Act, account: Mapping[str, Any] | Answer = ACCOUNT, **options: Any
) -> AsyncIterator[tuple[SesTwin, SesProvider]]:
    """A twin that plays, and the provider that calls it; ``options`` are fields of `SesSettings`."""
    async with (
        a_ses_twin(*plays, account=account) as twin,
        a_provider(twin.url, **options) as provider,
    ):
        yield twin, provider
