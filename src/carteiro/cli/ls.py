"""``carteiro ls``: list messages."""

from functools import partial
from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.messages import COLUMNS, message_document
from carteiro.cli.options import Before, ExternalId, Limit, OfTenant, Since
from carteiro.cli.paging import print_pages
from carteiro.model import KindName, MessageFilter, State


@at_a_desk
async def ls(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    *,
    tenant: OfTenant = None,
    status: Annotated[
        State | None, typer.Option(case_sensitive=False, help="State of the message.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Address of the recipient.")] = None,
    external_id: ExternalId = None,
    provider_id: Annotated[
        str | None, typer.Option(help="Message id, set by the provider.")
    ] = None,
    recipient_external_id: Annotated[
        str | None, typer.Option(help="External id of the recipient, set by the tenant.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Tag of the message.")] = None,
    code: Annotated[
        str | None, typer.Option(help="Code of the last failure: ours, or the provider's.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Kind of job: email:send, or a task.")] = None,
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
        code=code,
        created_after=since,
        created_before=before,
    )
    asked = partial(desk.backend.reading.messages, wanted)
    await print_pages(desk.out, asked, COLUMNS, message_document, what="messages", limit=limit)
