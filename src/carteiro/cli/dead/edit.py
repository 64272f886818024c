"""``carteiro dead edit``: change a dead letter and send it again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from carteiro.cli.content import Content
from carteiro.cli.dead.letters import known_letter
from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.exit_codes import NotNow, WrongUse
from carteiro.cli.faults import faults_by_option
from carteiro.cli.files import read_document
from carteiro.cli.messages import known_message
from carteiro.cli.options import MessageArgument, OfTenant
from carteiro.dead_letters.redrive import revise
from carteiro.model import RedriveAnswer
from carteiro.runtime.acting import user

_REFUSED = {
    RedriveAnswer.ALREADY: "was redriven already",
    RedriveAnswer.NOT_FOUND: "is not a dead letter any more",
    RedriveAnswer.NO_CONTENT: "cannot be redriven: its content was pruned",
    RedriveAnswer.CHANGED: "was edited by someone else in the meantime: check it, and edit it again",
}


@dataclass(frozen=True)
class Changes(Content):
    """The changes; None keeps the value."""

    file: Annotated[
        Path | None,
        typer.Option(help="Changes as one JSON document; null removes a field; - reads stdin."),
    ] = None


@at_a_desk
async def edit(
    desk: Desk, message: MessageArgument, *, tenant: OfTenant = None, changes: Changes
) -> None:
    """Change the content of a dead letter, and send it again as a new revision.

    It is validated like a new e-mail. Fields that are not given keep their values.
    """
    letter = await known_letter(desk, message, tenant=tenant)
    before = await known_message(desk, message, tenant=tenant)
    given = changes.as_fields()
    fields = given if changes.file is None else read_document(changes.file) | given
    if not fields:
        raise WrongUse("nothing to change: carteiro dead redrive sends it again as it is")
    rules = desk.settings.sending_rules
    with faults_by_option(None if changes.file is None else given):
        revision = await revise(before, fields, backend=desk.backend, rules=rules)
    await desk.remember_provider()
    [answer] = await desk.backend.dead_letters.redrive([letter.id], by=user(), revision=revision)
    if answer is not RedriveAnswer.REDRIVEN:
        raise NotNow(f"message {letter.id} {_REFUSED[answer]}")
    document = {"outboxId": letter.id, "answer": answer.value}
    desk.out.answer(document, f"{letter.id} was redriven as a new revision.")
