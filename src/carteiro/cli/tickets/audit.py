"""``carteiro tickets audit``: who changed dead tickets."""

from functools import partial
from typing import Annotated

import typer

from carteiro.cli.audit import COLUMNS
from carteiro.cli.documents import document_of
from carteiro.cli.options import Limit, Since
from carteiro.cli.paging import print_pages
from carteiro.cli.tickets.dlq.session import ArchiveSession, at_the_archive
from carteiro.model import AuditFilter


@at_the_archive
async def audit(  # noqa: PLR0913 - a parameter per flag
    session: ArchiveSession,
    *,
    who: Annotated[str | None, typer.Option(help="Name of a user (default: anyone).")] = None,
    action: Annotated[
        str | None, typer.Option(help="Action, such as republish (default: any).")
    ] = None,
    ticket: Annotated[
        str | None, typer.Option(help="Id of a ticket that was named alone (default: any).")
    ] = None,
    since: Since = None,
    limit: Limit = 50,
) -> None:
    """List changes of dead tickets by people, newest first: republish, acknowledge, quarantine, release, purge."""
    wanted = AuditFilter(who, action, object=ticket, since=since)
    asked = partial(session.archive.changes, wanted)
    await print_pages(session.out, asked, COLUMNS, document_of, what="changes", limit=limit)
