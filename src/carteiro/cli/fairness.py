"""``carteiro fairness``: show the turns of tenants, and change them at run time."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer

from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import WrongUse
from carteiro.model import LARGEST_BATCH, Fairness

app = DeskCommands("Show and change how tenants take turns.")

_IN_FORCE = "in force"
_RUN_TIME, _SETTINGS = "changed at run time, for all workers", "from each worker's settings"


@dataclass(frozen=True)
class Fields:
    """The changes; None keeps the value."""

    enable_round_robin: Annotated[
        bool | None, typer.Option(help="Take turns; otherwise first in, first out.")
    ] = None
    max_jobs_per_tenant_batch: Annotated[
        int | None,
        typer.Option(min=1, max=LARGEST_BATCH, help="Maximum number of jobs in one turn."),
    ] = None
    round_robin_base_priority: Annotated[
        int | None,
        typer.Option(min=1, help="Priority shown right after a turn; 1 is the most urgent."),
    ] = None
    priority_increment_per_round: Annotated[
        int | None,
        typer.Option(
            min=0, help="Amount by which the shown priority rises for each round without a turn."
        ),
    ] = None
    max_round_robin_priority: Annotated[
        int | None,
        typer.Option(min=1, help="Most urgent priority that a waiting tenant can reach."),
    ] = None

    def given(self) -> dict[str, Any]:
        """The fields that were given."""
        return {name: each for name, each in asdict(self).items() if each is not None}


@app.at_a_desk()
async def show(desk: Desk) -> None:
    """Show how tenants take turns, and any change made at run time."""
    fairness, is_override = await desk.backend.tenants.fairness()
    facts = asdict(fairness) | {_IN_FORCE: _RUN_TIME if is_override else _SETTINGS}
    desk.out.thing(_document(fairness, is_override=is_override), facts)


@app.at_a_desk("set")
async def set_(
    desk: Desk,
    *,
    reset: Annotated[
        bool, typer.Option("--reset", help="Return to each worker's settings.")
    ] = False,
    fields: Fields,
) -> None:
    """Change how tenants take turns, for all workers, until it is reset; other fields stay."""
    tenants, given = desk.backend.tenants, fields.given()
    if reset == bool(given):
        raise WrongUse("give changes, or --reset alone: carteiro fairness set --help")
    before, _ = await tenants.fairness()
    changed = None if reset else replace(before, **given)
    await tenants.tune(changed)
    fairness, is_override = await tenants.fairness()
    sentence = f"Tenants take turns {_SETTINGS if reset else 'as set here, in all workers'}."
    desk.out.answer(_document(fairness, is_override=is_override), sentence)


def _document(fairness: Fairness, *, is_override: bool) -> dict[str, object]:
    return document_of(fairness, isOverride=is_override)
