"""``carteiro alerts``: alerts, their silences, and the notices about them."""

from datetime import timedelta
from functools import partial
from typing import Annotated, TypeAlias

import typer

from carteiro.api.admin.alerts import LONGEST_REASON, LONGEST_SILENCE
from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound, NotNow, WrongUse
from carteiro.cli.options import Limit, OfTenant, duration
from carteiro.cli.paging import print_pages
from carteiro.cli.printing import Column
from carteiro.model import ZERO
from carteiro.model.alerts import (
    ALL_ALERTS,
    DEAD_LETTERS,
    Alert,
    AlertDefinition,
    AlertRefusal,
    DueNotice,
    Silence,
    Unit,
)
from carteiro.policy.alert_states import silenced_tenant
from carteiro.views.moments import in_iso
from carteiro.views.notices import title

app = DeskCommands("Show, acknowledge and silence alerts, and test their channels.")

NameArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the alert, from ls.")
]
Subject: TypeAlias = Annotated[
    str,
    typer.Option(help="Subject: a tenant, TENANT/TEMPLATE or a provider (default: none)."),
]


def _threshold(definition: AlertDefinition) -> str:
    unit = " s" if definition.unit is Unit.SECONDS else ""
    return f"{definition.threshold:g}{unit}"


_COLUMNS: tuple[Column[Alert], ...] = (
    Column("alert", lambda row: row.name, is_whole=True),
    Column("subject", lambda row: row.subject),
    Column("state", lambda row: row.state.value),
    Column("value", lambda row: f"{row.value:g}"),
    Column("threshold", lambda row: f"{row.threshold:g}"),
    Column("since", lambda row: row.since, is_whole=True),
    Column("last notice", lambda row: row.told_at, is_whole=True),
    Column("acknowledged by", lambda row: row.acknowledged_by),
)
_DEFINITIONS: tuple[Column[AlertDefinition], ...] = (
    Column("alert", lambda row: row.name, is_whole=True),
    Column("severity", lambda row: row.severity.value),
    Column("about", lambda row: row.about.value),
    Column("threshold", _threshold),
    Column("condition", lambda row: row.condition),
)
_SILENCES: tuple[Column[Silence], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("alert", lambda row: row.alert, is_whole=True),
    Column("subject", lambda row: row.subject),
    Column("from", lambda row: row.created_at, is_whole=True),
    Column("until", lambda row: row.until, is_whole=True),
    Column("by", lambda row: row.by),
    Column("reason", lambda row: row.reason),
)
_NOTICES: tuple[Column[DueNotice], ...] = (
    Column("notice", lambda row: row.notice.id, is_whole=True),
    Column("title", lambda row: title(row.notice)),
    Column("channel", lambda row: row.channel or "(not seen by a worker yet)"),
    Column("tries", lambda row: row.tries),
    Column("next", lambda row: row.due_at, is_whole=True),
    Column("error", lambda row: row.error),
)


@app.at_a_desk()
async def ls(
    desk: Desk,
    *,
    tenant: OfTenant = None,
    resolved: Annotated[bool, typer.Option(help="Resolved alerts instead of open ones.")] = False,
    limit: Limit = 50,
) -> None:
    """List open or resolved alerts, the last change first."""
    restricted = await desk.tenant_asked_for(tenant)
    asked = partial(desk.backend.alerts.list, tenant=restricted, resolved=resolved)
    what = "resolved alerts" if resolved else "open alerts"
    await print_pages(desk.out, asked, _COLUMNS, document_of, what=what, limit=limit)


@app.at_a_desk()
async def definitions(desk: Desk) -> None:
    """List the definitions of alerts, with their thresholds."""
    known = list(desk.settings.alert_rules().definitions.values())
    desk.out.rows(known, _DEFINITIONS, document_of, what="alerts")


@app.at_a_desk()
async def show(desk: Desk, name: NameArgument) -> None:
    """Show the definition of an alert, what to do, its open subjects, and its silences of the last month."""
    known = _known(desk, name)
    alerts = (await desk.backend.alerts.list(name=name)).rows
    silences = await desk.backend.alerts.silenced(name)
    facts = {
        "alert": known.name,
        "severity": known.severity.value,
        "about": known.about.value,
        "condition": known.condition,
        "threshold": _threshold(known),
        "window": known.window or None,
        "lasts": known.lasts or None,
        "what to do": known.action,
        "runbook": known.runbook,
    }
    document = document_of(
        known,
        open=[document_of(each) for each in alerts],
        silences=[document_of(each) for each in silences],
    )
    desk.out.thing(document, facts)
    desk.out.beside("Open", alerts, _COLUMNS)
    desk.out.beside("Silences", silences, _SILENCES)


@app.at_a_desk()
async def ack(desk: Desk, name: NameArgument, *, subject: Subject = "") -> None:
    """Acknowledge a firing alert: reminders stop, and a notice names the person who works on it."""
    rules = desk.settings.alert_rules()
    match await desk.backend.alerts.acknowledge(name, subject, rules):
        case Alert() as alert:
            desk.out.answer(document_of(alert), f"Acknowledged {_named(name, subject)}.")
        case AlertRefusal.NOT_FIRING:
            raise NotNow(
                f"{_named(name, subject)} is not firing: carteiro alerts ls lists open alerts; "
                "--subject names a tenant, a template or a provider"
            )
        case _:
            _known(desk, name)


@app.at_a_desk()
async def silence(
    desk: Desk,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the alert; '*': all alerts.")
    ],
    *,
    lasts: Annotated[timedelta, duration("Time until the silence ends: 2h, 3d.")],
    reason: Annotated[str, typer.Option(help="Reason, shown to other operators.")],
    subject: Subject = "",
) -> None:
    """Send no notices about an alert for a time. What still holds at the end is reported then."""
    rules = desk.settings.alert_rules()
    tenant = silenced_tenant(name, subject, rules)
    if tenant is None:
        _known(desk, name)
        return
    if not ZERO < lasts <= LONGEST_SILENCE or not reason.strip() or len(reason) > LONGEST_REASON:
        fault = (
            f"--lasts is more than 0 and at most 90d, --reason has 1 to {LONGEST_REASON} characters"
        )
        raise WrongUse(fault)
    made = await desk.backend.alerts.silence(name, subject, tenant, lasts=lasts, reason=reason)
    if made is AlertRefusal.NO_TENANT:
        raise NotFound(f"there is no tenant {tenant!r}: carteiro tenant ls lists all")
    if not isinstance(made, Silence):
        raise NotNow("there are too many silences: carteiro alerts unsilence ID ends one")
    until = in_iso(made.until)
    desk.out.answer(
        document_of(made),
        f"Silenced {_named(name, subject)} until {until}: carteiro alerts unsilence {made.id} ends it.",
    )


@app.at_a_desk()
async def silences(
    desk: Desk,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that ended in the last month, newest first.")
    ] = False,
) -> None:
    """List silences, the next to end first."""
    alerts = desk.backend.alerts
    found = await (alerts.silenced() if everything else alerts.silences())
    desk.out.rows(found, _SILENCES, document_of, what="silences")


@app.at_a_desk()
async def unsilence(
    desk: Desk, silence: Annotated[str, typer.Argument(metavar="ID", help="Id, from silences.")]
) -> None:
    """End a silence now."""
    if not await desk.backend.alerts.unsilence(silence):
        raise NotFound(f"there is no silence {silence}: carteiro alerts silences lists them")
    desk.out.answer({"id": silence}, f"Ended silence {silence}.")


@app.at_a_desk()
async def test(desk: Desk) -> None:
    """Send a test notice to every channel; a worker does, within seconds."""
    notice = await desk.backend.alerts.test()
    sentence = (
        f"Stored notice {notice.id}: workers send it; carteiro alerts notices lists failures."
    )
    desk.out.answer({"id": notice.id}, sentence)


@app.at_a_desk()
async def notices(desk: Desk) -> None:
    """List notices that channels do not have yet, with the last error."""
    found = await desk.backend.alerts.waiting()
    desk.out.rows(found, _NOTICES, document_of, what="undelivered notices")


def _named(name: str, subject: str) -> str:
    return f"{name} {subject}".rstrip()


def _known(desk: Desk, name: str) -> AlertDefinition:
    known = desk.settings.alert_rules().definitions.get(name)
    if known is None:
        raise NotFound(
            f"there is no alert {name!r}: carteiro alerts definitions lists all; "
            f"{ALL_ALERTS!r} and {DEAD_LETTERS!r} can be silenced, too"
        )
    return known
