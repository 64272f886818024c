"""``carteiro ls``: which messages there are."""

from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.messages import COLUMNS, message_document
from carteiro.cli.options import Before, Limit, OfTenant, Since
from carteiro.cli.paging import print_pages
from carteiro.model import KindName, MessageFilter, State


@at_a_desk
async def ls(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    *,
    tenant: OfTenant = None,
    status: Annotated[
        State | None, typer.Option(case_sensitive=False, help="In this state.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="To this address.")] = None,
    external_id: Annotated[str | None, typer.Option(help="With this id of the tenant's.")] = None,
    provider_id: Annotated[
        str | None, typer.Option(help="With this message id of the provider's.")
    ] = None,
    recipient_external_id: Annotated[
        str | None, typer.Option(help="To the recipient with this id of the tenant's.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="With this tag.")] = None,
    kind: Annotated[str | None, typer.Option(help="Of this kind: email:send, or a task.")] = None,
    since: Since = None,
    before: Before = None,
    limit: Limit = 50,
) -> None:
    """List messages, newest first."""
    wanted = MessageFilter(
        tenant=await desk.tenant_asked_for(tenant),
        kind=None if kind is None else KindName(kind),
        state=status,
        to=to,
        external_id=external_id,
        provider_id=provider_id,
        recipient_external_id=recipient_external_id,
        tag=tag,
        created_after=since,
        created_before=before,
    )
    await print_pages(
        desk,
        lambda cursor, size: desk.backend.reading.messages(wanted, cursor=cursor, limit=size),
        limit=limit,
        columns=COLUMNS,
        document=message_document,
    )
