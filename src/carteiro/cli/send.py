"""``carteiro send``: submit one e-mail."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from carteiro.app import Carteiro
from carteiro.cli.content import Content
from carteiro.cli.desk import Desk, at_a_new_desk
from carteiro.cli.documents import plain
from carteiro.cli.exit_codes import NotNow, WrongUse
from carteiro.cli.faults import faults_by_option
from carteiro.cli.files import read_document
from carteiro.cli.first_tenant import FIRST_TENANT
from carteiro.cli.options import ExternalId, Variables, a_time, duration
from carteiro.cli.template import variables_of
from carteiro.model import MILLISECOND, Replayed, State, TenantId


@at_a_new_desk
async def send(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    *,
    tenant: Annotated[str, typer.Option(help="Tenant that sends.")] = FIRST_TENANT,
    content: Content,
    cc: Annotated[
        list[str] | None, typer.Option(help="Further visible recipient; repeatable.")
    ] = None,
    bcc: Annotated[list[str] | None, typer.Option(help="Hidden recipient; repeatable.")] = None,
    template: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Template type of the tenant.")
    ] = None,
    var: Variables = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag for searches; repeatable.")] = None,
    external_id: ExternalId = None,
    at: Annotated[
        datetime | None, typer.Option(parser=a_time, metavar="TIME", help="Earliest time to send.")
    ] = None,
    ttl: Annotated[timedelta | None, duration("Time to live: 2h, 7d (default: settings).")] = None,
    priority: Annotated[int | None, typer.Option(help="Priority: 1 (most urgent) to 10.")] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Idempotency key: the e-mail is sent once, even if the command is repeated."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File with all fields as one JSON document, as over HTTP; - reads stdin."
        ),
    ] = None,
) -> None:
    """Submit one e-mail; it is stored durably, and a worker sends it."""
    given = content.as_fields() | _given(
        cc=cc,
        bcc=bcc,
        tags=tag,
        externalId=external_id,
        scheduledAt=at,
        ttl=ttl,
        priority=priority,
        idempotency_key=key,
    )
    if template is not None:
        given["template"] = {"type": template, "variables": variables_of(var)}
    elif var:
        raise WrongUse("--var needs --template")
    fields = given if file is None else read_document(file) | given
    await _refuse_closed(desk, tenant)
    await desk.remember_provider()
    # It has no task, so it needs no thread.
    post = Carteiro(desk.backend, desk.settings, threads=ThreadPoolExecutor(1))
    with faults_by_option(None if file is None else given):
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
    """Reject an unknown tenant: only the first one is created automatically."""
    if tenant == FIRST_TENANT:
        await desk.backend.tenants.ensure([TenantId(tenant)])
    if (await desk.known_tenant(tenant)).disabled:
        raise NotNow(f"tenant {tenant!r} is disabled: carteiro tenant enable {tenant} opens it")


def _given(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - the fields of an e-mail
    """The flags that were given, as JSON fields."""
    return {
        name: each // MILLISECOND if isinstance(each, timedelta) else each
        for name, each in fields.items()
        if each is not None
    }
