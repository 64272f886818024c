"""``carteiro audit``: who changed what."""

from functools import partial
from typing import Annotated

import orjson
import typer

from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.documents import document_of
from carteiro.cli.options import Limit, OfTenant, Since
from carteiro.cli.paging import print_pages
from carteiro.cli.printing import Column
from carteiro.model import AuditFilter, AuditRow, Metadata, TenantId

app = DeskCommands("Show who changed what.")


def _fields(given: Metadata) -> str:
    return " ".join(f"{name}={orjson.dumps(each).decode()}" for name, each in given.items())


COLUMNS: tuple[Column[AuditRow], ...] = (
    Column("at", lambda row: row.at, is_whole=True),
    Column("who", lambda row: row.who),
    Column("via", lambda row: row.via),
    Column("from", lambda row: row.origin),
    Column("action", lambda row: f"{row.action} {row.kind}", is_whole=True),
    Column("object", lambda row: row.object),
    Column("tenant", lambda row: row.tenant),
    Column("before", lambda row: _fields(row.before)),
    Column("after", lambda row: _fields(row.after)),
)


@app.callback()
def audit() -> None:
    """Show who changed what."""


@app.at_a_desk()
async def ls(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    *,
    who: Annotated[
        str | None, typer.Option(help="Name of a token or key, or of a user (default: anyone).")
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Action, such as pause (default: any).")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Kind of object, such as tenant (default: any).")
    ] = None,
    object_: Annotated[
        str | None, typer.Option("--object", help="Id of the object (default: any).")
    ] = None,
    tenant: OfTenant = None,
    since: Since = None,
    limit: Limit = 50,
) -> None:
    """List changes, newest first, also those of tenants that were erased since."""
    restricted = None if tenant is None else TenantId(tenant)
    wanted = AuditFilter(who, action, kind, object_, restricted, since)
    asked = partial(desk.backend.audit.list, wanted)
    await print_pages(desk.out, asked, COLUMNS, document_of, what="changes", limit=limit)
