"""Evaluation of alerts: they change state by the conditions that hold now.

A crash loses no notice: it is stored with the change that it reports.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TypeAlias

from carteiro.maintenance.loop import run_led
from carteiro.maintenance.watch import EVALUATION
from carteiro.model.alerts import AlertRules, Finding
from carteiro.ports.alerts import Alerts
from carteiro.ports.upkeep import Upkeep

Findings: TypeAlias = Callable[[], Awaitable[Sequence[Finding]]]


async def evaluate_alerts(
    upkeep: Upkeep,
    alerts: Alerts,
    findings: Findings,
    rules: AlertRules,
    *,
    every: timedelta = timedelta(seconds=15),
) -> None:
    """Evaluate alerts until cancelled."""

    async def page() -> bool:
        await evaluate_once(alerts, findings, rules)
        return False

    await run_led(upkeep, EVALUATION, page, every=every)


async def evaluate_once(alerts: Alerts, findings: Findings, rules: AlertRules) -> None:
    """Evaluate alerts once; processes that do so at the same time wait for each other."""
    await alerts.move(await findings(), rules)
    if rules.dead_letters_every is not None:
        await alerts.note_dead_letters(every=rules.dead_letters_every, but=rules.system)
