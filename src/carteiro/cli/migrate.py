"""``carteiro migrate``: bring the store's schema up to date."""

import asyncio

from carteiro.cli.desk import refuse_memory, told
from carteiro.cli.first_tenant import add_first_tenant
from carteiro.cli.options import AsJson, ConfigFile, QueueUrl, StoreUrl
from carteiro.cli.printing import Printer
from carteiro.config import Settings, load
from carteiro.stores.open import open_backend, schema_version


@told
def migrate(
    *,
    config: ConfigFile = None,
    store: StoreUrl = None,
    queue: QueueUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create or upgrade the schema of the store and print both versions; a new store gets the tenant default."""
    settings = load(file=config, overrides={"store": store, "queue": queue})
    refuse_memory(settings)
    before, after = asyncio.run(_migrated(settings))
    sentence = (
        f"The schema is version {after}, the newest."
        if before == after
        else f"The schema was version {before} and is version {after} now."
    )
    Printer(as_json=as_json).answer({"from": before, "to": after}, sentence)


async def _migrated(settings: Settings) -> tuple[int, int]:
    """Opening brings the schema up to date."""
    before = await schema_version(settings)
    async with open_backend(settings, governs=False) as backend:
        await add_first_tenant(backend)
        return before, await schema_version(settings)
