"""``carteiro key``: API keys of a tenant."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeAlias

import typer

from carteiro.api.access_keys import hash_key, hint_of, make_key
from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotFound, NotNow, WrongUse
from carteiro.cli.options import TenantName, Yes, a_life, duration
from carteiro.cli.printing import Column
from carteiro.config import is_reference
from carteiro.config import secret as secret_at
from carteiro.model import Key, KeyId, Tenant, TooManyKeys
from carteiro.policy.names import HOLDER_RULE, is_holder
from carteiro.ports import Keys

_OWN_KEY = re.compile(r"[!-~]{32,256}")

app = DeskCommands("Show, create and revoke the API keys of a tenant.")


def state_of(key: Key) -> str:
    """State of a key, for people."""
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= datetime.now(UTC):
        return "expired"
    return "live"


KeyArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the key, from ls.")
]

_COLUMNS: tuple[Column[Key], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("name", lambda row: row.name),
    Column("begins with", lambda row: row.hint),
    Column("state", state_of),
    Column("created", lambda row: row.created_at, is_whole=True),
    Column("expires", lambda row: row.expires_at, is_whole=True),
    Column("last used", lambda row: row.last_used_at, is_whole=True),
)


@app.at_a_desk()
async def ls(desk: Desk, *, tenant: TenantName) -> None:
    """List the keys of a tenant, newest first; the keys themselves are not stored."""
    known = await desk.known_tenant(tenant)
    keys = await desk.backend.keys.list(known.id)
    desk.out.rows(keys, _COLUMNS, lambda key: document_of(key, state=state_of(key)), what="keys")


@app.at_a_desk()
async def add(
    desk: Desk,
    *,
    tenant: TenantName,
    name: Annotated[
        str | None, typer.Option(help="Name of its holder, for the audit rows (default: none).")
    ] = None,
    expires_in: Annotated[
        timedelta | None,
        duration("Time until it expires: 90d, 12h (default: never).", parser=a_life),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(
            "--secret",
            metavar="REFERENCE",
            help="Existing key to import, as env:NAME or file:PATH (default: a new key).",
        ),
    ] = None,
) -> None:
    """Create a key and show it once, or import an existing one."""
    known = await desk.known_tenant(tenant)
    if name is not None and not is_holder(name):
        raise WrongUse(f"--name {HOLDER_RULE}")
    secret = make_key() if given is None else _own_key(given)
    key = await added(desk.backend.keys, known, secret, expires_in=expires_in, name=name or "")
    if given is not None:
        desk.out.answer(document_of(key), f"The key at {given} is now valid for tenant {tenant!r}.")
        return
    desk.out.secret(
        document_of(key, key=secret),
        f"API key of tenant {tenant!r}, shown only once and stored as a hash:",
        secret,
    )


def _own_key(reference: str) -> str:
    if not is_reference(reference):
        raise WrongUse("--secret takes env:NAME or file:PATH, never the key itself")
    key = secret_at(reference)
    if not _OWN_KEY.fullmatch(key):
        raise WrongUse(f"{reference}: a key has 32 to 256 printable characters and no spaces")
    return key


async def added(keys: Keys, tenant: Tenant, secret: str, **fields: Any) -> Key:  # noqa: ANN401 - those of a key
    """The new key, stored; `NotNow` if the tenant has the maximum number."""
    answer = await keys.add(tenant.id, key_hash=hash_key(secret), hint=hint_of(secret), **fields)
    if isinstance(answer, Key):
        return answer
    live = ", ".join(answer.live) if isinstance(answer, TooManyKeys) else "none"
    raise NotNow(
        f"tenant {tenant.id!r} has the maximum number of live keys ({live}): "
        f"carteiro key revoke ID --tenant {tenant.id} ends one"
    )


@app.at_a_desk()
async def revoke(
    desk: Desk,
    key: KeyArgument,
    *,
    tenant: TenantName,
    yes: Yes = False,
) -> None:
    """Revoke a key; its requests are refused within seconds."""
    known = await desk.known_tenant(tenant)
    confirm(f"Revoke key {key} of tenant {tenant!r}?", yes=yes)
    [is_revoked] = await desk.backend.keys.revoke([KeyId(key)], tenant=known.id)
    if not is_revoked:
        raise NotFound(f"tenant {tenant!r} has no live key {key!r}: carteiro key ls lists its keys")
    desk.out.answer({"id": key, "revoked": True}, f"Key {key} is revoked.")
