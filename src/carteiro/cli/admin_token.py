"""``carteiro admin-token``: the tokens for the administrators' endpoints."""

from datetime import timedelta
from typing import Annotated, Any

import typer

from carteiro.api.access_keys import hash_key, hint_of, make_token
from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound, NotNow, WrongUse
from carteiro.cli.key import KeyArgument, state_of
from carteiro.cli.options import OfTenant, Yes, a_life, duration
from carteiro.cli.printing import Column
from carteiro.model import (
    MOST_LIVE_TOKENS,
    Key,
    KeyId,
    NameTaken,
    Role,
    TenantUnknown,
    TooManyKeys,
)
from carteiro.policy.names import HOLDER_RULE, is_holder
from carteiro.ports import Keys
from carteiro.ports.keys import AddedKey

app = DeskCommands("Show, create and revoke admin tokens.")

FIRST_TOKEN = "admin"  # noqa: S105 - a name
_COLUMNS: tuple[Column[Key], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("name", lambda row: row.name),
    Column("role", lambda row: row.role),
    Column("tenant", lambda row: row.tenant or "(all)"),
    Column("begins with", lambda row: row.hint),
    Column("state", state_of),
    Column("expires", lambda row: row.expires_at, is_whole=True),
    Column("last used", lambda row: row.last_used_at, is_whole=True),
)


@app.at_a_desk()
async def ls(desk: Desk) -> None:
    """List the admin tokens, newest first; the tokens themselves are not stored."""
    tokens = await desk.backend.keys.list(None)
    desk.out.rows(
        tokens, _COLUMNS, lambda key: document_of(key, state=state_of(key)), what="tokens"
    )


@app.at_a_desk()
async def add(
    desk: Desk,
    name: Annotated[str, typer.Argument(help="Name of its holder, for the audit rows.")],
    *,
    role: Annotated[Role, typer.Option(help="What it may do; each role includes those before it.")],
    tenant: OfTenant = None,
    expires_in: Annotated[
        timedelta | None,
        duration("Time until it expires: 90d, 12h (default: never).", parser=a_life),
    ] = None,
) -> None:
    """Create an admin token and show it once."""
    if not is_holder(name):
        raise WrongUse(f"NAME {HOLDER_RULE}")
    restricted = await desk.tenant_asked_for(tenant)
    await _show_new(desk, name=name, role=role, tenant=restricted, expires_in=expires_in)


@app.at_a_desk()
async def revoke(desk: Desk, key: KeyArgument, *, yes: Yes = False) -> None:
    """Revoke an admin token; its requests are refused within seconds."""
    confirm(f"Revoke admin token {key}?", yes=yes)
    [is_revoked] = await desk.backend.keys.revoke([KeyId(key)], tenant=None)
    if not is_revoked:
        raise NotFound(f"there is no live admin token {key!r}: carteiro admin-token ls lists them")
    desk.out.answer({"id": key, "revoked": True}, f"Admin token {key} is revoked.")


@app.at_a_desk()
async def rotate(
    desk: Desk,
    name: Annotated[str, typer.Argument(help="Name of the tokens to replace.")] = FIRST_TOKEN,
    *,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="Keep the newest old token valid as well.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Create a new token, show it once, and revoke the old ones of the same name.

    It has the role and the tenant of the newest old one, and expires as long after its creation.
    """
    keys = desk.backend.keys
    named = [each for each in await keys.list(None) if each.name == name]
    live = [each for each in named if state_of(each) == "live"]
    if not live and name != FIRST_TOKEN:
        raise NotFound(
            f"there is no live admin token of {name!r}: carteiro admin-token add creates one"
        )
    if ending := live[1:] if keep_old else live:
        confirm(f"End the admin token {' and '.join(each.hint for each in ending)}?", yes=yes)
    await keys.revoke([each.id for each in live[1:]], tenant=None)
    kept: dict[str, Any] = {"role": Role.ADMIN, "tenant": None}
    for old in live[:1]:
        kept = {"role": old.role, "tenant": old.tenant}
        kept["expires_in"] = old.expires_at and old.expires_at - old.created_at
    await _show_new(desk, name=name, **kept)
    if not keep_old:  # last, so that there is a token at every moment
        await keys.revoke([each.id for each in live[:1]], tenant=None)


async def first_admin_token(keys: Keys) -> str | None:
    """A token, if there has never been one; it is stored as a hash and cannot be shown again."""
    if await keys.list(None):
        return None
    secret = make_token()
    made = await _added(keys, secret, name=FIRST_TOKEN, role=Role.ADMIN, tenant=None)
    return secret if isinstance(made, Key) else None


async def _show_new(desk: Desk, **fields: Any) -> None:  # noqa: ANN401 - those of a key
    secret = make_token()
    name, end_one = fields["name"], "carteiro admin-token revoke ID ends one"
    match await _added(desk.backend.keys, secret, **fields):
        case Key() as made:
            said = "Admin token, shown only once and stored as a hash:"
            desk.out.secret(document_of(made, token=secret), said, secret)
        case NameTaken(holder):
            raise NotNow(
                f"the live admin token {holder} of {name!r} has another role or tenant: "
                f"choose another name, or {end_one}"
            )
        case TooManyKeys(live):
            of_name = "" if len(live) == MOST_LIVE_TOKENS else f" of {name!r}"
            raise NotNow(f"there are {len(live)} live admin tokens{of_name}: {end_one}")
        case TenantUnknown(tenant):
            raise NotFound(f"there is no tenant {tenant!r}: carteiro tenant ls lists all")


async def _added(keys: Keys, secret: str, *, tenant: Any, **fields: Any) -> AddedKey:  # noqa: ANN401 - those of a key
    return await keys.add(tenant, key_hash=hash_key(secret), hint=hint_of(secret), **fields)
