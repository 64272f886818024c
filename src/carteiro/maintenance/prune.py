"""Bodies and histories of messages, audit rows, alerts and mails end after their retention, keys after a day."""

from datetime import timedelta

from carteiro.maintenance.loop import run_led
from carteiro.model import MessageId
from carteiro.observability import log
from carteiro.ports.upkeep import Kept, Upkeep


async def prune(
    upkeep: Upkeep,
    *,
    bodies: timedelta | None,
    histories: timedelta | None,
    kept: Kept = Kept(),  # noqa: B008 - a value, never changed
    every: timedelta = timedelta(minutes=10),
) -> None:
    """Prune until cancelled, one pass over the ledger each time; without a retention only keys are deleted."""
    after: MessageId | None = None

    async def page() -> bool:
        nonlocal after
        pruned = await upkeep.prune(bodies=bodies, histories=histories, kept=kept, after=after)
        after = pruned.after
        count = pruned.bodies + pruned.histories + sum(pruned.others)
        if count:
            log.upkeep_done("prune", count=count)
        return after is not None or pruned.has_more

    await run_led(upkeep, "prune", page, every=every)
