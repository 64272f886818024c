"""``carteiro inbox``: mail that the sandbox accepted."""

import base64
import html
import tempfile
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import orjson
import typer

from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound
from carteiro.cli.messages import known_message
from carteiro.cli.options import OfTenant, Since, TenantName, Yes
from carteiro.cli.paging import pages
from carteiro.cli.printing import Column, note
from carteiro.model import InboxEntry, InboxFilter, InboxMail

app = DeskCommands("Show and delete mail that the sandbox accepted.")

MailArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the message; its newest delivery is shown.")
]

# It shows what a mail client shows, and runs no scripts.
_BEFORE_BODY = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
    " content=\"default-src 'none'; img-src http: https: data:; font-src http: https: data:;"
    " style-src http: https: 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
)

_COLUMNS: tuple[Column[InboxEntry], ...] = (
    Column("message", lambda row: row.message, is_whole=True),
    Column("tenant", lambda row: row.tenant),
    Column("to", lambda row: row.to),
    Column("subject", lambda row: row.subject),
    Column("at", lambda row: row.at, is_whole=True),
)


@app.at_a_desk()
async def ls(  # noqa: PLR0913 - one for each option
    desk: Desk,
    *,
    tenant: OfTenant = None,
    to: Annotated[str | None, typer.Option(help="Address, in any case.")] = None,
    subject: Annotated[str | None, typer.Option(help="Part of the subject, in any case.")] = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number to list, newest first.")] = 50,
) -> None:
    """List delivered mail, newest first."""
    wanted = InboxFilter(await desk.tenant_asked_for(tenant), to=to, subject=subject, since=since)
    has_any = False
    async for rows, _ in pages(partial(desk.backend.inbox.find, wanted), limit=limit):
        has_any = has_any or bool(rows)
        desk.out.rows(rows, _COLUMNS, lambda mail: _document(mail, content=None))
    if not has_any and not desk.out.is_for_programs:
        is_filtered = tenant or to or subject or since
        hint = "carteiro send --to ok@sandbox.test sends a first mail"
        note("No mail matches." if is_filtered else f"The inbox is empty: {hint}.")


@app.at_a_desk()
async def show(desk: Desk, message: MailArgument, *, tenant: OfTenant = None) -> None:
    """Show headers, attachments (name and size) and text of one mail."""
    mail = await _delivered(desk, message, tenant)
    content = orjson.loads(mail.content)
    facts = {
        "message": mail.message,
        "tenant": mail.tenant,
        "from": content.get("from"),
        "to": mail.to,
        "cc": tuple(content.get("cc", ())),
        "bcc": tuple(content.get("bcc", ())),
        "reply to": content.get("replyTo"),
        "subject": mail.subject,
        **content.get("headers", {}),
        "attachments": tuple(_attached(each) for each in content.get("attachments", ())),
        "at": mail.at,
        "provider's id": mail.provider_id,
    }
    desk.out.thing(_document(mail, content=content), facts)
    desk.out.text("\n" + (content.get("text") or content.get("html") or ""))


@app.at_a_desk("open")
async def open_(
    desk: Desk,
    message: MailArgument,
    *,
    tenant: OfTenant = None,
    browser: Annotated[bool, typer.Option(help="Open the file in a browser.")] = True,
) -> None:
    """Write the HTML of a mail to a file that only you can read, and open it in a browser. No scripts run."""
    mail = await _delivered(desk, message, tenant)
    content = orjson.loads(mail.content)
    body = content.get("html") or f"<pre>{html.escape(content.get('text') or '')}</pre>"
    path = Path(tempfile.mkdtemp(prefix="carteiro-")) / f"{mail.message}.html"
    path.touch(mode=0o600)
    path.write_text(f"{_BEFORE_BODY}{body}", "utf-8")
    is_open = browser and not desk.out.is_for_programs and webbrowser.open(path.as_uri())
    sentence = f"Opened {path}" if is_open else f"Written to {path}"
    desk.out.answer({"outboxId": mail.message, "path": str(path)}, sentence)


@app.at_a_desk()
async def delete(desk: Desk, message: MailArgument, *, tenant: OfTenant = None) -> None:
    """Delete all deliveries of one mail; the message itself stays."""
    mail = await _delivered(desk, message, tenant)
    count = await desk.backend.inbox.delete(mail.message, tenant=mail.tenant)
    desk.out.answer({"outboxId": mail.message, "count": count}, f"Deleted {mail.message}")


@app.at_a_desk()
async def empty(desk: Desk, *, tenant: TenantName, yes: Yes = False) -> None:
    """Delete all mails of a tenant; the messages themselves stay."""
    known = await desk.known_tenant(tenant)
    confirm(f"Delete all mails of tenant {tenant} from the inbox?", yes=yes)
    count = 0
    while page := await desk.backend.inbox.empty(known.id):
        count += page
    desk.out.answer({"tenant": tenant, "count": count}, f"Deleted {count} mails")


def _attached(attachment: dict[str, str]) -> str:
    size = len(base64.b64decode(attachment["content"]))
    return f"{attachment['filename']} ({size:,} bytes)"


async def _delivered(desk: Desk, message: str, tenant: str | None) -> InboxMail:
    found = await known_message(desk, message, tenant=tenant)
    mails = await desk.backend.inbox.list(message=found.id)
    if not mails:
        text = f"message {message} is not in the inbox (it is {found.state}): carteiro show {message} says why"
        raise NotFound(text)
    return mails[0]


def _document(mail: InboxMail | InboxEntry, *, content: Any) -> dict[str, Any]:  # noqa: ANN401 - the e-mail as JSON
    document = document_of(mail)
    document["outboxId"] = document.pop("message")
    document["content"] = content
    return document
