"""``carteiro erase``: erase personal data."""

from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.options import TenantName, Yes
from carteiro.cli.recipient import erase_recipient


@at_a_desk
async def erase(
    desk: Desk,
    *,
    recipient: Annotated[
        str, typer.Option(metavar="ID", help="Recipient whose personal data is erased.")
    ],
    tenant: TenantName,
    yes: Yes = False,
) -> None:
    """Erase the personal data of one recipient everywhere; the same as recipient erase."""
    await erase_recipient(desk, recipient, tenant, yes=yes)
