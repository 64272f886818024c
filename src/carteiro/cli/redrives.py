"""``carteiro redrives``: jobs that redrive many dead letters."""

from functools import partial
from typing import Annotated
from uuid import UUID

import typer

from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.options import Limit, OfTenant
from carteiro.cli.paging import print_pages
from carteiro.cli.printing import Column, note
from carteiro.model import ENDED_REDRIVES, Redrive, RedriveId, RedriveState
from carteiro.views.redrives import redrive_json

app = DeskCommands("Follow, pause, resume and cancel redrives of many dead letters.")

Identity = Annotated[str, typer.Argument(metavar="ID", help="Id of the redrive.")]

_FLAGS = {"companyId": "tenant", "movedAfter": "since", "movedBefore": "before"}
_COLUMNS: tuple[Column[Redrive], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("tenant", lambda row: row.tenant or "(all)"),
    Column("state", lambda row: row.state, is_whole=True),
    Column("redriven", lambda row: f"{row.course.redriven} of {row.total}", is_whole=True),
    Column("sent", lambda row: row.course.sent),
    Column("failed", lambda row: row.course.failed),
    Column("started", lambda row: row.started_at, is_whole=True),
    Column("by", lambda row: row.by),
    Column("reason", lambda row: row.reason),
)


@app.at_a_desk()
async def ls(desk: Desk, *, tenant: OfTenant = None, limit: Limit = 50) -> None:
    """List open and ended redrives, newest first."""
    asked = partial(desk.backend.redrives.list, tenant=await desk.tenant_asked_for(tenant))
    await print_pages(desk.out, asked, _COLUMNS, redrive_json, what="redrives", limit=limit)


@app.at_a_desk()
async def show(desk: Desk, redrive: Identity) -> None:
    """Show a redrive: its state, its pace, and how many were sent or failed again."""
    found = _known(await desk.backend.redrives.show(_id_of(redrive)), redrive)
    desk.out.thing(redrive_json(found), _facts(found))
    if found.state in {RedriveState.STOPPED, RedriveState.PAUSED}:
        note(f"carteiro redrives resume {found.id} continues it, cancel ends it.")


@app.at_a_desk()
async def pause(desk: Desk, redrive: Identity) -> None:
    """Pause a redrive: no message is redriven until it is resumed."""
    await _set(desk, redrive, RedriveState.PAUSED)


@app.at_a_desk()
async def resume(desk: Desk, redrive: Identity) -> None:
    """Resume a paused or stopped redrive; it sends a few messages first, as at its start."""
    await _set(desk, redrive, RedriveState.RUNNING)


@app.at_a_desk()
async def cancel(desk: Desk, redrive: Identity) -> None:
    """Cancel a redrive; messages that were redriven already are still sent."""
    await _set(desk, redrive, RedriveState.CANCELLED)


def _facts(redrive: Redrive) -> dict[str, object]:
    course, ramp, matching = redrive.course, redrive.ramp, redrive_json(redrive)["matching"]
    return {
        "redrive": redrive.id,
        "tenant": redrive.tenant or "(all)",
        "state": redrive.state,
        "reason": redrive.reason,
        "matching": tuple(f"{_FLAGS.get(name, name)} {each}" for name, each in matching.items()),
        "redriven": f"{course.redriven} of {redrive.total}",
        "sent": course.sent,
        "failed again": course.failed,
        "cancelled": course.cancelled or None,
        "no result in time": course.late or None,
        "no result yet": course.watched,
        "could not be redriven": course.skipped or None,
        "rate": f"{course.rate:g} a second" if course.rate else f"the first {ramp.canary}",
        "maximum rate": f"{ramp.max_rate:g} a second",
        "stops above": f"{ramp.max_failed:.0%} failed",
        "started": redrive.started_at,
        "by": redrive.by,
        "provider": redrive.provider,
        "changed": redrive.changed_at,
    }


async def _set(desk: Desk, redrive: str, state: RedriveState) -> None:
    after = _known(await desk.backend.redrives.set(_id_of(redrive), state), redrive)
    if after.state is not state:
        is_over = after.state in ENDED_REDRIVES
        another = "dead redrive --all starts another"
        way = another if is_over else f"redrives resume {after.id} continues it"
        raise NotNow(f"redrive {redrive} is {after.state}: carteiro {way}")
    desk.out.answer(redrive_json(after), f"Redrive {after.id} is {after.state}.")


def _id_of(given: str) -> RedriveId:
    try:
        return RedriveId(str(UUID(given)))
    except ValueError:
        return RedriveId("")


def _known(redrive: Redrive | None, given: str) -> Redrive:
    if redrive is None:
        raise NotFound(f"there is no redrive {given!r}: carteiro redrives ls lists all")
    return redrive
