"""Starts redrives of dead letters whose provider has recovered, a tenant each in turn; `redrives` advances them.

A crash starts nothing twice: a tenant has at most one, and its dead letters wait until they are redriven.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from carteiro.maintenance.loop import PROCESS, run_led
from carteiro.maintenance.redrives import Redriving
from carteiro.model import Ramp, Via
from carteiro.observability import log
from carteiro.policy.automatic_redrives import NEWS, may_try, standing_of
from carteiro.ports.rollups import Rollups
from carteiro.ports.upkeep import Upkeep
from carteiro.runtime.acting import acting_as, on_this_machine

_TASK = "automatic redrives"
_ONE_SHOT_TERM = timedelta(seconds=1)  # as in `expire`
_AT_ONCE = 100  # tenants
_RAMP = Ramp(max_rate=100.0)  # after an outage, new mail comes first


async def redrive_automatically(
    upkeep: Upkeep,
    rollups: Rollups,
    redriving: Redriving,
    *,
    every: timedelta = timedelta(seconds=5),
) -> None:
    """Start automatic redrives until cancelled; nothing to do if they are switched off."""
    turns = Turns()

    async def page() -> bool:
        await _start_all(rollups, redriving, turns)
        return False

    if redriving.plan.is_on:
        await run_led(upkeep, _TASK, page, every=every)


async def start_automatic_redrives(upkeep: Upkeep, rollups: Rollups, redriving: Redriving) -> None:
    """Start those that may start now, unless another process leads this task; for one-shot processes."""
    if not redriving.plan.is_on:
        return
    if await upkeep.lead(_TASK, holder=PROCESS, term=_ONE_SHOT_TERM):
        with acting_as(on_this_machine(Via.UPKEEP, "upkeep")):
            await _start_all(rollups, redriving, Turns())


class Turns:
    """The turns: all tenants of a provider before one comes again, and each provider first in turn."""

    def __init__(self) -> None:
        self._round = 0
        self.last: dict[str, str] = {}  # tenant of each provider

    def order(self, providers: Sequence[str]) -> list[str]:
        """The providers, another one first each time."""
        self._round += 1
        first = self._round % len(providers)
        return [*providers[first:], *providers[:first]]


async def _start_all(rollups: Rollups, redriving: Redriving, turns: Turns) -> None:
    waiting = await redriving.automatic.providers()
    if not waiting:
        return
    news = await rollups.split("provider", "minute", NEWS)
    is_open = await redriving.open_circuits()
    for provider in turns.order(waiting):
        figures: Mapping[str, int] = news.get(provider, {})
        if may_try(standing_of(figures, is_open=provider in is_open)):
            last = turns.last.get(provider, "")
            turns.last[provider] = await _start_some(redriving, provider, last)


async def _start_some(redriving: Redriving, provider: str, after: str) -> str:
    """Start those of the next tenants; return the last one, so that others come next time."""
    automatic, plan = redriving.automatic, redriving.plan
    tenants = await automatic.ripe(provider, plan, after=after, limit=_AT_ONCE)
    if not tenants and after:
        tenants = await automatic.ripe(provider, plan, limit=_AT_ONCE)
    for tenant in tenants:
        started = await automatic.start(tenant, provider, plan, _RAMP)
        if started is not None:
            log.redrive_started(started.id, tenant, provider, started.total)
    return tenants[-1] if tenants else ""
