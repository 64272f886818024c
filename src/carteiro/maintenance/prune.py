"""Bodies and histories of finished messages go after their retention, idempotency keys after their day."""

from datetime import timedelta

from carteiro.maintenance.loop import run_led
from carteiro.model import MessageId
from carteiro.observability import log
from carteiro.ports.upkeep import Upkeep


async def prune(
    upkeep: Upkeep,
    *,
    bodies: timedelta | None,
    histories: timedelta | None,
    every: timedelta = timedelta(minutes=10),
) -> None:
    """Prune for ever, a pass over the ledger each time; without any retention only keys go."""
    after: MessageId | None = None

    async def page() -> bool:
        nonlocal after
        pruned = await upkeep.prune(bodies=bodies, histories=histories, after=after)
        after = pruned.after
        count = pruned.bodies + pruned.histories + pruned.keys
        if count:
            log.upkeep_done("prune", count=count)
        return after is not None or pruned.has_more

    await run_led(upkeep, "prune", page, every=every)
