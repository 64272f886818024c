"""``carteiro recipient``: recipients of a tenant."""

from functools import partial
from typing import Annotated, TypeAlias
from uuid import UUID

import typer

from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.options import ExternalId, Limit, TenantName, Yes
from carteiro.cli.paging import erased_in_pages, print_pages
from carteiro.cli.printing import Column
from carteiro.model import Recipient, RecipientId
from carteiro.policy.addresses import judge_address

app = DeskCommands("Show, delete and erase recipients.")

RecipientArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The recipient.")]

_COLUMNS: tuple[Column[Recipient], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("e-mail", lambda row: row.email),
    Column("external id", lambda row: row.external_id),
    Column("name", lambda row: row.nome or row.razao_social),
    Column("created", lambda row: row.created_at, is_whole=True),
    Column("deleted", lambda row: row.deleted_at, is_whole=True),
)


@app.at_a_desk()
async def ls(
    desk: Desk,
    *,
    tenant: TenantName,
    email: Annotated[str | None, typer.Option(help="Address of the recipient.")] = None,
    external_id: ExternalId = None,
    limit: Limit = 50,
) -> None:
    """List the recipients of a tenant, newest first; deleted ones too."""
    known = await desk.known_tenant(tenant)
    address = None if email is None else judge_address(email) or email
    asked = partial(desk.backend.recipients.list, known.id, external_id=external_id, email=address)
    await print_pages(desk.out, asked, _COLUMNS, document_of, what="recipients", limit=limit)


@app.at_a_desk()
async def show(desk: Desk, recipient: RecipientArgument, *, tenant: TenantName) -> None:
    """Show one recipient, deleted or not."""
    found = await _known(desk, recipient, tenant)
    facts = {
        "id": found.id,
        "tenant": found.tenant,
        "e-mail": found.email,
        "external id": found.external_id,
        "document hash": found.cpf_cnpj_hash,
        "registered name": found.razao_social,
        "name": found.nome,
        "created": found.created_at,
        "deleted": found.deleted_at,
    }
    desk.out.thing(document_of(found), facts)


@app.at_a_desk()
async def delete(
    desk: Desk, recipient: RecipientArgument, *, tenant: TenantName, yes: Yes = False
) -> None:
    """Delete a recipient: it stays visible, and e-mails that name its recipientId are not sent.

    An e-mail to the same address that does not name its recipientId is sent: to prevent that, suppress
    the address (carteiro suppression add).
    """
    found = await _known(desk, recipient, tenant)
    confirm(f"Delete recipient {recipient} of tenant {tenant!r}?", yes=yes)
    if not await desk.backend.recipients.delete(found.id, tenant=found.tenant):
        raise NotNow(f"recipient {recipient} is deleted already")
    desk.out.answer({"recipientId": found.id, "deleted": True}, f"Deleted {found.id}.")


@app.at_a_desk()
async def erase(
    desk: Desk, recipient: RecipientArgument, *, tenant: TenantName, yes: Yes = False
) -> None:
    """Permanently erase the personal data of a recipient, also from its messages."""
    await erase_recipient(desk, recipient, tenant, yes=yes)


async def erase_recipient(desk: Desk, recipient: str, tenant: str, *, yes: bool) -> None:
    """Erase, page by page; wait for messages in flight."""
    found = await _known(desk, recipient, tenant)
    confirm(f"Permanently erase recipient {recipient} of tenant {tenant!r}?", yes=yes)
    erase = partial(desk.backend.recipients.erase, found.id, tenant=found.tenant)
    messages, _ = await erased_in_pages(erase)
    document = {"recipientId": found.id, "messages": messages}
    desk.out.answer(document, f"Erased {found.id}, and its data in {messages} messages.")


async def _known(desk: Desk, given: str, tenant: str) -> Recipient:
    known = await desk.known_tenant(tenant)
    try:
        identity = RecipientId(str(UUID(given)))
    except ValueError:
        identity = RecipientId("")
    found = await desk.backend.recipients.show(identity, tenant=known.id)
    if found is None:
        text = f"tenant {tenant!r} has no recipient {given!r}: carteiro recipient ls lists them"
        raise NotFound(text)
    return found
