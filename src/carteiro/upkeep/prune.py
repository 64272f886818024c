"""Bodies and histories of finished messages go after their retention."""

from datetime import timedelta

from carteiro.model import MessageId
from carteiro.ports.upkeep import Upkeep
from carteiro.telemetry import log
from carteiro.upkeep.loop import run_led


async def prune(
    upkeep: Upkeep,
    *,
    bodies: timedelta | None,
    histories: timedelta | None,
    every: timedelta = timedelta(minutes=10),
) -> None:
    """Prune for ever, a pass over the ledger each time; without any retention there is nothing to do."""
    if bodies is None and histories is None:
        return
    after: MessageId | None = None

    async def page() -> bool:
        nonlocal after
        pruned = await upkeep.prune(bodies=bodies, histories=histories, after=after)
        after = pruned.after
        if pruned.bodies or pruned.histories:
            log.upkeep_done("prune", count=pruned.bodies + pruned.histories)
        return after is not None

    await run_led(upkeep, "prune", page, every=every)
