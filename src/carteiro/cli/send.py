"""``carteiro send``: hand in one e-mail."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from carteiro.app import Carteiro
from carteiro.cli.desk import Desk, at_a_new_desk
from carteiro.cli.documents import plain
from carteiro.cli.exit_codes import NotNow, WrongUse
from carteiro.cli.files import read_document, read_words
from carteiro.cli.first_tenant import FIRST_TENANT
from carteiro.cli.options import Html, HtmlFile, TextFile, Words, a_duration, a_time
from carteiro.cli.template import variables_of
from carteiro.model import Replayed, State, TenantId
from carteiro.policy.lifecycle import MILLISECOND


@at_a_new_desk
async def send(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    *,
    tenant: Annotated[str, typer.Option(help="Who sends.")] = FIRST_TENANT,
    to: Annotated[str | None, typer.Option(help="To whom.")] = None,
    subject: Annotated[str | None, typer.Option(help="The subject.")] = None,
    text: Words = None,
    html: Html = None,
    text_file: TextFile = None,
    html_file: HtmlFile = None,
    sender: Annotated[str | None, typer.Option("--from", help="From whom.")] = None,
    cc: Annotated[list[str] | None, typer.Option(help="Also to; repeat it for more.")] = None,
    bcc: Annotated[list[str] | None, typer.Option(help="Also to, unseen; repeat it.")] = None,
    reply_to: Annotated[str | None, typer.Option(help="Where answers go.")] = None,
    template: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Made from this template of the tenant.")
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable of the template; user.name=Ana nests."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="To be found by; repeat it.")] = None,
    external_id: Annotated[str | None, typer.Option(help="An id of the tenant's own.")] = None,
    at: Annotated[
        datetime | None, typer.Option(parser=a_time, metavar="TIME", help="Not before then.")
    ] = None,
    ttl: Annotated[
        timedelta | None,
        typer.Option(parser=a_duration, metavar="DURATION", help="Give up after: 2h, 7d."),
    ] = None,
    priority: Annotated[int | None, typer.Option(help="1, the most urgent, to 10.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Sent once under this key, however often it is asked.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="All fields as one JSON document, as over HTTP; - reads stdin."),
    ] = None,
) -> None:
    """Accept one e-mail, durably; a worker sends it."""
    fields = {} if file is None else read_document(file)
    fields |= _given(
        to=to,
        subject=subject,
        text=read_words(text, text_file, flag="--text"),
        html=read_words(html, html_file, flag="--html"),
        **{"from": sender},
        cc=cc,
        bcc=bcc,
        replyTo=reply_to,
        tags=tag,
        externalId=external_id,
        scheduledAt=at,
        ttl=ttl,
        priority=priority,
        idempotency_key=key,
    )
    if template is not None:
        fields["template"] = {"type": template, "variables": variables_of(var)}
    elif var:
        raise WrongUse("--var is for --template: name the template too")
    await _refuse_closed(desk, tenant)
    # It has no task, so it needs no thread.
    post = Carteiro(desk.backend, desk.settings, threads=ThreadPoolExecutor(1))
    answer = await post.send(tenant=tenant, **fields)
    document = {
        "outboxId": answer.id,
        "companyId": tenant,
        "status": State.ENQUEUED,
        "receivedAt": answer.received_at,
        "replayed": isinstance(answer, Replayed),
    }
    again = " (it was accepted before)" if isinstance(answer, Replayed) else ""
    desk.out.answer(plain(document), f"Accepted {answer.id}{again}.")


async def _refuse_closed(desk: Desk, tenant: str) -> None:
    """A mistyped tenant must not be made; only the first one needs no one to add it."""
    if tenant == FIRST_TENANT:
        await desk.backend.tenants.ensure([TenantId(tenant)])
    if (await desk.known_tenant(tenant)).disabled:
        raise NotNow(f"tenant {tenant!r} is disabled: carteiro tenant enable {tenant} opens it")


def _given(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - the fields of an e-mail
    """The flags that were given, as JSON says them."""
    return {
        name: each // MILLISECOND if isinstance(each, timedelta) else each
        for name, each in fields.items()
        if each is not None
    }
