"""``carteiro cancel``: cancel messages that are not sent yet."""

from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.exit_codes import ExitCode
from carteiro.cli.messages import message_id
from carteiro.cli.options import OfTenant
from carteiro.cli.printing import Column
from carteiro.model import CancelAnswer, value
from carteiro.runtime.messages import cancel_message

_CODES = {
    CancelAnswer.CANCELLED: ExitCode.OK,
    CancelAnswer.REQUESTED: ExitCode.OK,
    CancelAnswer.NOT_FOUND: ExitCode.NOT_FOUND,
    CancelAnswer.FINISHED: ExitCode.REFUSED,
}


@value
class _Answered:
    message: str
    answer: CancelAnswer


_COLUMNS: tuple[Column[_Answered], ...] = (
    Column("id", lambda row: row.message, is_whole=True),
    Column("answer", lambda row: row.answer),
)


@at_a_desk
async def cancel(
    desk: Desk,
    messages: Annotated[list[str], typer.Argument(metavar="ID...", help="The messages.")],
    *,
    tenant: OfTenant = None,
) -> None:
    """Cancel waiting messages; if one is being sent right now, prevent a second attempt."""
    ids = [message_id(each) for each in messages]
    answered = [
        _Answered(each, await cancel_message(desk.backend, each, tenant=tenant)) for each in ids
    ]
    desk.out.rows(
        answered, _COLUMNS, lambda row: {"outboxId": row.message, "answer": row.answer.value}
    )
    code = max(_CODES[each.answer] for each in answered)
    if code is not ExitCode.OK:
        raise typer.Exit(code)
