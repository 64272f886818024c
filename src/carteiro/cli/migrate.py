"""``carteiro migrate``: bring the store's schema up to date."""

import asyncio

from carteiro.cli.desk import Common, grouped
from carteiro.cli.first_tenant import add_first_tenant
from carteiro.config import Settings
from carteiro.stores.open import open_backend, schema_version


@grouped
def migrate(*, common: Common) -> None:
    """Create or upgrade the schema of the store and print both versions; a new store gets the tenant default."""
    before, after = asyncio.run(_migrated(common.shared_settings()))
    sentence = (
        f"The schema is version {after}, the newest."
        if before == after
        else f"The schema was version {before} and is version {after} now."
    )
    common.out.answer({"from": before, "to": after}, sentence)


async def _migrated(settings: Settings) -> tuple[int, int]:
    """Opening brings the schema up to date."""
    before = await schema_version(settings)
    async with open_backend(settings, governs=False) as backend:
        await add_first_tenant(backend)
        return before, await schema_version(settings)
