"""Evaluation of alerts: they change state by the conditions that hold now.

A crash loses no notice: it is stored with the change that it reports.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from carteiro.maintenance.loop import run_led
from carteiro.maintenance.watch import TASK
from carteiro.model import TenantId
from carteiro.model.alerts import AlertRules, Finding
from carteiro.ports.alerts import Alerts
from carteiro.ports.upkeep import Upkeep


async def evaluate_alerts(  # noqa: PLR0913 - the ports, and a setting each
    upkeep: Upkeep,
    alerts: Alerts,
    findings: Callable[[], Awaitable[Sequence[Finding]]],
    rules: AlertRules,
    *,
    dead_letters_every: timedelta | None,
    system: TenantId,
    every: timedelta = timedelta(seconds=15),
) -> None:
    """Evaluate alerts until cancelled; ``dead_letters_every``: interval of notices about dead letters, None: never."""

    async def page() -> bool:
        await evaluate_once(
            alerts, findings, rules, dead_letters_every=dead_letters_every, system=system
        )
        return False

    await run_led(upkeep, TASK, page, every=every)


async def evaluate_once(
    alerts: Alerts,
    findings: Callable[[], Awaitable[Sequence[Finding]]],
    rules: AlertRules,
    *,
    dead_letters_every: timedelta | None,
    system: TenantId,
) -> None:
    """Evaluate alerts once; processes that do so at the same time wait for each other."""
    await alerts.move(await findings(), rules)
    if dead_letters_every is not None:
        await alerts.note_dead_letters(every=dead_letters_every, but=system)
