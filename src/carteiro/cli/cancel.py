"""``carteiro cancel``: cancel messages that are not sent yet."""

from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.exit_codes import ExitCode
from carteiro.cli.messages import message_id, print_answers
from carteiro.cli.options import OfTenant
from carteiro.model import CancelAnswer
from carteiro.runtime.messages import cancel_message

_CODES = {
    CancelAnswer.CANCELLED: ExitCode.OK,
    CancelAnswer.REQUESTED: ExitCode.OK,
    CancelAnswer.NOT_FOUND: ExitCode.NOT_FOUND,
    CancelAnswer.FINISHED: ExitCode.REFUSED,
}


@at_a_desk
async def cancel(
    desk: Desk,
    messages: Annotated[list[str], typer.Argument(metavar="ID", help="The messages.")],
    *,
    tenant: OfTenant = None,
) -> None:
    """Cancel waiting messages; if one is being sent right now, prevent a second attempt."""
    ids = [message_id(each) for each in messages]
    answers = [
        (each, await cancel_message(desk.backend, each, tenant=tenant, is_audited=True))
        for each in ids
    ]
    print_answers(desk, answers, _CODES)
