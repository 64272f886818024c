"""What was not sent by its time becomes EXPIRED and a dead letter."""

from datetime import timedelta

from carteiro.ports.upkeep import Upkeep
from carteiro.telemetry import log
from carteiro.upkeep.loop import run_led

_PAGE = 500


async def expire(upkeep: Upkeep, *, every: timedelta = timedelta(seconds=1)) -> None:
    """Expire for ever."""

    async def page() -> bool:
        expired = await upkeep.expire(limit=_PAGE)
        if expired:
            log.upkeep_done("expire", count=expired)
        return expired == _PAGE

    await run_led(upkeep, "expire", page, every=every)
