"""``carteiro admin-token``: what opens the endpoints of administrators."""

from typing import Annotated

import typer

from carteiro.api.access_keys import hash_key, hint_of, make_token
from carteiro.cli.desk import Desk, at_a_desk, confirm
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.key import state_of
from carteiro.cli.options import Yes
from carteiro.model import Key
from carteiro.ports import Keys

app = typer.Typer(help="Change the token of administrators.", no_args_is_help=True)


@app.callback()
def admin_token() -> None:
    """Change the token of administrators."""


@app.command()
@at_a_desk
async def rotate(
    desk: Desk,
    *,
    keep_old: Annotated[
        bool,
        typer.Option("--keep-old", help="The newest old token stays valid beside the new one."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Make another token, show it this once, and end the old ones."""
    keys = desk.backend.keys
    live = [each for each in await keys.list(None) if state_of(each) == "live"]
    if ending := live[1:] if keep_old else live:
        confirm(f"End the admin token {' and '.join(each.hint for each in ending)}?", yes=yes)
    await keys.revoke([each.id for each in live[1:]], tenant=None)
    secret = make_token()
    made = await _added(keys, secret)
    if made is None:
        raise NotNow("others are making tokens at this moment: try again")
    if not keep_old:  # last, so that there is a token at every moment
        await keys.revoke([each.id for each in live[:1]], tenant=None)
    desk.out.secret(
        document_of(made, token=secret),
        "Admin token, shown this once and stored as a hash only:",
        secret,
    )


async def first_admin_token(keys: Keys) -> str | None:
    """A token, if there has never been one; afterwards nobody can know it."""
    if await keys.list(None):
        return None
    secret = make_token()
    return None if await _added(keys, secret) is None else secret


async def _added(keys: Keys, secret: str) -> Key | None:
    """The token, known to the store; None if there are as many as there may be."""
    answer = await keys.add(None, key_hash=hash_key(secret), hint=hint_of(secret))
    return answer if isinstance(answer, Key) else None
