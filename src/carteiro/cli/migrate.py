"""``carteiro migrate``: bring the store's schema up to date."""

import asyncio

from carteiro.app import open_backend, schema_version
from carteiro.cli.desk import refuse_memory, told
from carteiro.cli.options import AsJson, ConfigFile, QueueUrl, StoreUrl
from carteiro.cli.printing import Printer
from carteiro.config import Settings, load


@told
def migrate(
    *,
    config: ConfigFile = None,
    store: StoreUrl = None,
    queue: QueueUrl = None,
    as_json: AsJson = False,
) -> None:
    """Bring the store up to date, and say from which version to which; a missing file is made."""
    settings = load(file=config, overrides={"store": store, "queue": queue})
    refuse_memory(settings)
    before, after = asyncio.run(_migrated(settings))
    sentence = (
        f"The schema is version {after}: nothing to do."
        if before == after
        else f"The schema was version {before} and is version {after} now."
    )
    Printer(as_json=as_json).answer({"from": before, "to": after}, sentence)


async def _migrated(settings: Settings) -> tuple[int, int]:
    """Opening brings the schema up to date."""
    before = await schema_version(settings)
    async with open_backend(settings, governs=False):
        return before, await schema_version(settings)
