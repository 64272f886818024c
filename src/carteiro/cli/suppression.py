"""``carteiro suppression``: suppressed addresses of a tenant."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, TypeAlias

import typer

from carteiro.api.suppressions import view
from carteiro.cli.desk import Desk, DeskCommands
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.options import Limit, TenantName, duration
from carteiro.cli.paging import print_pages
from carteiro.cli.printing import Column
from carteiro.model import NewSuppression, StorageLimit, Suppression, SuppressionReason
from carteiro.policy.addresses import judge_address

app = DeskCommands("Show, add and remove suppressed addresses.")

Addresses: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="ADDRESS", help="E-mail addresses.")
]

_COLUMNS: tuple[Column[Suppression], ...] = (
    Column("e-mail", lambda row: row.address or "(erased)", is_whole=True),
    Column("reason", lambda row: row.reason, is_whole=True),
    Column("suppressed", lambda row: "yes" if row.is_active else f"{row.bounces} so far"),
    Column("since", lambda row: row.created_at, is_whole=True),
    Column("until", lambda row: row.expires_at, is_whole=True),
)


@app.at_a_desk()
async def ls(
    desk: Desk,
    *,
    tenant: TenantName,
    email: Annotated[str | None, typer.Option(help="Address (default: all).")] = None,
    limit: Limit = 50,
) -> None:
    """List the suppressed addresses of a tenant, newest first, and the soft bounces counted so far."""
    known = await desk.known_tenant(tenant)
    asked = partial(desk.backend.suppressions.list, known.id, email=email)
    await print_pages(desk.out, asked, _COLUMNS, _document, what="suppressions", limit=limit)


@app.at_a_desk()
async def add(
    desk: Desk,
    addresses: Addresses,
    *,
    tenant: TenantName,
    expires_in: Annotated[
        timedelta | None, duration("Time until it ends: 90d, 12h (default: never).")
    ] = None,
) -> None:
    """Suppress addresses: new messages to them are not sent, and become dead letters."""
    known = await desk.known_tenant(tenant)
    for each in addresses:
        if judge_address(each) is None:
            raise typer.BadParameter(f"{each!r} is not an e-mail address")
    if expires_in is not None and not expires_in:
        raise typer.BadParameter(
            "--expires-in 0 has no effect: use carteiro suppression rm to remove an address"
        )
    until = None if expires_in is None else datetime.now(UTC) + expires_in
    manual = SuppressionReason.MANUAL
    new = [NewSuppression(each, manual, None, until) for each in addresses]
    most = desk.settings.storage.suppressions
    count = await desk.backend.suppressions.put(new, tenant=known.id, most=most)
    if isinstance(count, StorageLimit):
        text = f"tenant {tenant!r} has {most} suppressions, its limit: remove some, or raise storage.suppressions"
        raise NotNow(text)
    desk.out.answer({"count": count}, f"Suppressed {count} for tenant {tenant!r}.")


@app.at_a_desk()
async def rm(desk: Desk, addresses: Addresses, *, tenant: TenantName) -> None:
    """Remove addresses from the list, whatever the reason was."""
    known = await desk.known_tenant(tenant)
    count = await desk.backend.suppressions.remove(addresses, tenant=known.id)
    if not count:
        text = f"tenant {tenant!r} has none of these suppressed: carteiro suppression ls lists them"
        raise NotFound(text)
    said = f"Removed; tenant {tenant!r} can send to them again."
    desk.out.answer({"count": count}, said)


def _document(row: Suppression) -> dict[str, Any]:
    """As in the HTTP API."""
    return view(row).model_dump(mode="json", by_alias=True)
