"""The reference page of roles, from the table of rights and the summaries of the endpoints."""

import asyncio

from api_page import document
from carteiro.api.docs_page import operations_of
from carteiro.api.rights import RIGHTS
from carteiro.model import Role

_INTRODUCTION = """\
An [admin token](../how-to/give-people-access.md) has a name, a role, optionally an expiry, and optionally one tenant.
Each role may do all that the roles before it may. Every request is checked against this table, in one place; an
endpoint without a row cannot be offered.

- **viewer** reads everything but secrets, contents of dead letters and addresses of recipients included, and changes
  nothing. It fits dashboards and scrapers.
- **operator** also keeps mail moving: redrive, edit, cancel, pause, resume, and the lists of people to send nothing to.
- **admin** also defines tenants, keys, tokens, templates and the rules of turns, and erases.

A token for one tenant sees and changes that tenant alone, and nothing of the installation: another tenant's things
are `404`, an endpoint that is not for it is `403`. It cannot change the share or the limits of its tenant, nor disable
or enable it, and is refused while the tenant is disabled. A role that is too low is `403`; an expired, revoked or
unknown token is `401`.

The command line has no roles: a user who may open the store may do everything, and is recorded by name.
"""


def roles_page(note: str) -> str:
    """Each endpoint of administrators, the roles that may use it, and whether a token for one tenant may."""
    summaries = {
        f"{method} {path}": operation["summary"].rstrip("?")
        for path, method, operation in operations_of(asyncio.run(document()))
    }
    rows = "".join(
        f"| {summaries[endpoint]} | `{endpoint}` | {' | '.join(_may(role, right.least) for role in Role)} "
        f"| {'yes' if right.scoped else ''} |\n"
        for endpoint, right in RIGHTS.items()
    )
    return (
        f"# What each role may do\n\n{note}\n{_INTRODUCTION}\n"
        f"| | endpoint | {' | '.join(Role)} | token for one tenant |\n"
        f"| --- | --- | {'--- | ' * len(Role)}--- |\n{rows}"
    )


def _may(role: Role, least: Role) -> str:
    return "yes" if role.covers(least) else ""
