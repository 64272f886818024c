"""``carteiro admin-token``: the token for the administrators' endpoints."""

from typing import Annotated

import typer

from carteiro.api.access_keys import hash_key, hint_of, make_token
from carteiro.cli.desk import Desk, DeskCommands, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.key import state_of
from carteiro.cli.options import Yes
from carteiro.model import Key
from carteiro.ports import Keys

app = DeskCommands("Change the admin token.")


@app.callback()
def admin_token() -> None:
    """Change the admin token."""


@app.at_a_desk()
async def rotate(
    desk: Desk,
    *,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="Keep the newest old token valid as well.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Create a new token, show it once, and revoke the old ones."""
    keys = desk.backend.keys
    live = [each for each in await keys.list(None) if state_of(each) == "live"]
    if ending := live[1:] if keep_old else live:
        confirm(f"End the admin token {' and '.join(each.hint for each in ending)}?", yes=yes)
    await keys.revoke([each.id for each in live[1:]], tenant=None)
    secret = make_token()
    made = await _added(keys, secret)
    if made is None:
        raise NotNow("other processes are creating tokens right now: try again")
    if not keep_old:  # last, so that there is a token at every moment
        await keys.revoke([each.id for each in live[:1]], tenant=None)
    desk.out.secret(
        document_of(made, token=secret),
        "Admin token, shown only once and stored as a hash:",
        secret,
    )


async def first_admin_token(keys: Keys) -> str | None:
    """A token, if there has never been one; it is stored as a hash and cannot be shown again."""
    if await keys.list(None):
        return None
    secret = make_token()
    return None if await _added(keys, secret) is None else secret


async def _added(keys: Keys, secret: str) -> Key | None:
    """The new token, stored; None if the maximum number exists already."""
    answer = await keys.add(None, key_hash=hash_key(secret), hint=hint_of(secret))
    return answer if isinstance(answer, Key) else None
