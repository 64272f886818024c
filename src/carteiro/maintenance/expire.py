"""Messages not sent before their deadline become EXPIRED and dead letters."""

from datetime import timedelta

from carteiro.maintenance.loop import PROCESS, run_led
from carteiro.observability import log
from carteiro.observability.metrics.tally import Tally
from carteiro.ports.upkeep import Upkeep

_PAGE = 500
# Of leadership: the next process must not wait for one that ended.
_ONE_SHOT_TERM = timedelta(seconds=1)


async def expire(upkeep: Upkeep, tally: Tally, *, every: timedelta = timedelta(seconds=1)) -> None:
    """Expire until cancelled."""
    await run_led(upkeep, "expire", lambda: _page(upkeep, tally), every=every)


async def expire_once(upkeep: Upkeep, tally: Tally) -> None:
    """Expire all due messages once, unless another process leads this task; for one-shot processes."""
    if await upkeep.lead("expire", holder=PROCESS, term=_ONE_SHOT_TERM):
        while await _page(upkeep, tally):
            pass


async def _page(upkeep: Upkeep, tally: Tally) -> bool:
    expired = await upkeep.expire(limit=_PAGE)
    if expired:
        tally.expired(expired)
        log.upkeep_done("expire", count=expired)
    return expired == _PAGE
