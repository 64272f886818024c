"""``carteiro template``: templates of a tenant."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound, NotNow, WrongUse
from carteiro.cli.faults import faults_by_option
from carteiro.cli.files import json_object, read_text
from carteiro.cli.options import RetryPreset, TenantName, Variables, Yes
from carteiro.cli.printing import Column
from carteiro.email.templates.rendering import Rendered, check_template, render, sample_templates
from carteiro.model import NewTemplate, StorageLimit, Template, TemplateSummary, TenantUnknown

app = DeskCommands("Show, write and preview templates.")

TypeArgument: TypeAlias = Annotated[str, typer.Argument(metavar="TYPE", help="Template type.")]
Version: TypeAlias = Annotated[
    int | None, typer.Option("--version", min=1, help="Version (default: the newest).")
]

_COLUMNS: tuple[Column[TemplateSummary], ...] = (
    Column("type", lambda row: row.type, is_whole=True),
    Column("version", lambda row: row.version),
    Column("subject", lambda row: row.subject),
    Column("html", lambda row: row.has_html),
    Column("text", lambda row: row.has_text),
    Column("retry preset", lambda row: row.retry_preset),
    Column("one-click unsubscribe", lambda row: row.one_click_unsubscribe),
    Column("automatic redrive", lambda row: row.automatic_redrive),
    Column("created", lambda row: row.created_at, is_whole=True),
    Column("deleted", lambda row: row.deleted_at, is_whole=True),
)


# --- looking ----------------------------------------------------------------------------------


@app.at_a_desk()
async def ls(
    desk: Desk,
    *,
    tenant: TenantName,
    type: Annotated[str | None, typer.Option(help="Type whose versions are listed.")] = None,
) -> None:
    """List the newest version of each template of a tenant, or the versions of one."""
    known = await desk.known_tenant(tenant)
    templates = desk.backend.templates
    found = await (templates.list(known.id) if type is None else templates.versions(known.id, type))
    desk.out.rows(found, _COLUMNS, document_of, what="templates")


@app.at_a_desk()
async def show(
    desk: Desk, type: TypeArgument, *, tenant: TenantName, version: Version = None
) -> None:
    """Show one template."""
    found = await _known(desk, type, tenant, version)
    desk.out.thing(
        document_of(found),
        {
            "type": found.type,
            "tenant": found.tenant,
            "version": found.version,
            "subject": found.subject,
            "retry preset": found.retry_preset,
            "one-click unsubscribe": found.one_click_unsubscribe,
            "automatic redrive": found.automatic_redrive,
            "created": found.created_at,
            "deleted": found.deleted_at,
        },
    )
    _print_bodies(desk, found)


@app.at_a_desk()
async def preview(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    type: TypeArgument,
    *,
    tenant: TenantName,
    version: Version = None,
    var: Variables = None,
    variables: Annotated[
        str | None, typer.Option(metavar="JSON", help="All variables as one JSON object.")
    ] = None,
) -> None:
    """Render a template with these variables; nothing is sent."""
    found = await _known(desk, type, tenant, version)
    given = {} if variables is None else json_object(variables, "--variables")
    made = render(found, given | variables_of(var))
    document = {"subject": made.subject, "html": made.html, "text": made.text}
    desk.out.thing(document, {"subject": made.subject})
    _print_bodies(desk, made)


def _print_bodies(desk: Desk, shown: Template | Rendered) -> None:
    for name, part in (("Text", shown.text), ("HTML", shown.html)):
        if part is not None:
            desk.out.text(f"\n{name}:\n{part}")


# --- changing ---------------------------------------------------------------------------------


@app.at_a_desk()
async def put(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    type: TypeArgument,
    *,
    tenant: TenantName,
    subject: Annotated[str, typer.Option(help="Subject; {{ name }} is a variable.")],
    html: Annotated[Path | None, typer.Option(help="File of the HTML body; - reads stdin.")] = None,
    text: Annotated[
        Path | None, typer.Option(help="File of the plain text body; - reads stdin.")
    ] = None,
    retry_preset: RetryPreset = None,
    one_click_unsubscribe: Annotated[
        bool,
        typer.Option(
            "--one-click-unsubscribe",
            help="Put a link into the headers of each mail that unsubscribes its recipient.",
        ),
    ] = False,
    automatic_redrive: Annotated[
        bool,
        typer.Option(
            help="Redrive its dead letters automatically after an outage, even if they are late then."
        ),
    ] = True,
) -> None:
    """Write the next version of a template; the 100 newest are kept. Messages accepted before keep their content."""
    known = await desk.known_tenant(tenant)
    new = NewTemplate(
        *(known.id, type, subject, read_text(html), read_text(text), retry_preset),
        one_click_unsubscribe=one_click_unsubscribe,
        automatic_redrive=automatic_redrive,
    )
    with faults_by_option():
        check_template(new, presets=desk.settings.presets, offer=desk.settings.one_click)
    made = await _defined(desk, new)
    desk.out.answer(document_of(made), f"{made.type} is version {made.version} now.")


@app.at_a_desk()
async def delete(desk: Desk, type: TypeArgument, *, tenant: TenantName, yes: Yes = False) -> None:
    """Delete a template type; messages accepted before are still sent."""
    found = await _known(desk, type, tenant, None)
    confirm(f"Delete template {type!r} of tenant {tenant!r}?", yes=yes)
    await desk.backend.templates.delete(found.tenant, type)
    desk.out.answer({"companyId": tenant, "type": type, "deleted": True}, f"Deleted {type}.")


@app.at_a_desk()
async def samples(desk: Desk, *, tenant: TenantName) -> None:
    """Add the sample templates to a tenant; its own templates stay unchanged."""
    known = await desk.known_tenant(tenant)
    has = {each.type for each in await desk.backend.templates.list(known.id)}
    for sample in sample_templates(known.id):
        if sample.type not in has:
            await _defined(desk, sample)
    listed = await desk.backend.templates.list(known.id)
    desk.out.rows([each for each in listed if each.type not in has], _COLUMNS, document_of)


async def _defined(desk: Desk, new: NewTemplate) -> Template:
    limits = desk.settings.storage.template_limits
    made = await desk.backend.templates.define(new, limits=limits)
    match made:
        case TenantUnknown():
            raise NotFound(f"there is no tenant {new.tenant!r}")
        case StorageLimit(what, most):
            raise NotNow(
                f"tenant {new.tenant!r} may keep {most} {what}, and current versions use them all: "
                f"carteiro template delete TYPE --tenant {new.tenant} makes room"
            )
    return made


async def _known(desk: Desk, type: str, tenant: str, version: int | None) -> Template:
    known = await desk.known_tenant(tenant)
    found = await desk.backend.templates.find(known.id, type, version=version)
    if found is None:
        which = type if version is None else f"{type}, version {version}"
        text = f"tenant {tenant!r} has no template {which!r}: carteiro template ls lists them"
        raise NotFound(text)
    return found


# --- variables --------------------------------------------------------------------------------


def variables_of(given: Sequence[str] | None) -> dict[str, Any]:
    """``user.name=Ana`` and the like as nested variables."""
    variables: dict[str, Any] = {}
    for each in given or ():
        path, is_pair, text = each.partition("=")
        *folders, name = path.split(".")
        if not is_pair or not all([*folders, name]):
            raise WrongUse(
                f"{each!r} is not a variable: write it as NAME=VALUE or OUTER.NAME=VALUE"
            )
        inner = variables
        for folder in folders:
            inner = inner.setdefault(folder, {})
            if not isinstance(inner, dict):
                raise WrongUse(f"{each!r}: {folder!r} has a value of its own already")
        inner[name] = text
    return variables
