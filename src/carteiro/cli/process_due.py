"""``carteiro process``: process due messages once; for cron and timers."""

from collections.abc import Mapping
from typing import Annotated

import typer

from carteiro.app import Carteiro
from carteiro.cli import process
from carteiro.cli.desk import Common, grouped
from carteiro.cli.documents import plain
from carteiro.cli.options import ProviderName
from carteiro.cli.printing import Printer
from carteiro.cli.process import Part, run_together, stop_on_signals
from carteiro.config import Settings
from carteiro.maintenance.rollups import fold_all
from carteiro.model import State


@grouped
def process_due(
    *,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of messages (default: all).")
    ] = None,
    provider: ProviderName = None,
    common: Common,
) -> None:
    """Process due messages once, then exit; safe alongside running workers. For cron and timers."""
    settings = common.shared_settings(provider=provider)
    process.run(_work_off(settings, common.out, limit), settings=settings)


async def _work_off(settings: Settings, printer: Printer, limit: int | None) -> None:
    stop = stop_on_signals()
    states: Mapping[State, int] = {}
    async with Carteiro.open(settings=settings) as post:

        async def work_off() -> None:
            nonlocal states
            states = await post.work_off(limit=limit)

        await run_together([Part(work_off, post.stop, post.stop_now)], stop)
        await fold_all(post.backend.rollups, most=settings.rollups.max_tenants)
        await post.alert_loops.once()
    count = sum(states.values())
    told_states = ", ".join(f"{number} {state}" for state, number in states.items())
    sentence = f"Worked on {count}: {told_states}." if count else "No message is due."
    printer.answer(plain({"processed": count, "states": dict(states)}), sentence)
