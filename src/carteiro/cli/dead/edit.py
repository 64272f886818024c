"""``carteiro dead edit``: mend a dead letter and send it again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from carteiro.cli.dead.letters import known_letter
from carteiro.cli.desk import Desk, at_a_desk, who
from carteiro.cli.exit_codes import NotNow, WrongUse
from carteiro.cli.files import read_document, read_words
from carteiro.cli.messages import known_message
from carteiro.cli.options import Html, HtmlFile, MessageArgument, OfTenant, TextFile, Words
from carteiro.dead_letters.redrive import revise
from carteiro.model import RedriveAnswer

_REFUSED = {
    RedriveAnswer.ALREADY: "is on its way again already",
    RedriveAnswer.NOT_FOUND: "is no dead letter any more",
    RedriveAnswer.NO_CONTENT: "has no content any more: it is past its retention",
    RedriveAnswer.CHANGED: "was edited by somebody else meanwhile: look at it, and edit it again",
}


@dataclass(frozen=True)
class Changes:
    """What is to be different; None stays as it is."""

    to: Annotated[str | None, typer.Option(help="To whom.")] = None
    subject: Annotated[str | None, typer.Option(help="The subject.")] = None
    text: Words = None
    html: Html = None
    text_file: TextFile = None
    html_file: HtmlFile = None
    sender: Annotated[str | None, typer.Option("--from", help="From whom.")] = None
    reply_to: Annotated[str | None, typer.Option(help="Where answers go.")] = None
    file: Annotated[
        Path | None,
        typer.Option(help="Changes as one JSON document; null takes a field away; - reads stdin."),
    ] = None

    def as_fields(self) -> dict[str, Any]:
        """The fields of an e-mail that are to be different."""
        given = {
            "to": self.to,
            "subject": self.subject,
            "text": read_words(self.text, self.text_file, flag="--text"),
            "html": read_words(self.html, self.html_file, flag="--html"),
            "from": self.sender,
            "replyTo": self.reply_to,
        }
        whole = {} if self.file is None else read_document(self.file)
        return whole | {name: each for name, each in given.items() if each is not None}


@at_a_desk
async def edit(
    desk: Desk, message: MessageArgument, *, tenant: OfTenant = None, changes: Changes
) -> None:
    """Change what a dead letter says, and send it again as a new revision.

    It is judged as a new e-mail is. What is not named stays as it was.
    """
    letter = await known_letter(desk, message, tenant=tenant)
    before = await known_message(desk, message, tenant=tenant)
    fields = changes.as_fields()
    if not fields:
        raise WrongUse("nothing to change: carteiro dead redrive sends it again as it is")
    rules = desk.settings.sending_rules
    revision = await revise(before, fields, backend=desk.backend, rules=rules)
    [answer] = await desk.backend.dead_letters.redrive([letter.id], by=who(), revision=revision)
    if answer is not RedriveAnswer.REDRIVEN:
        raise NotNow(f"message {letter.id} {_REFUSED[answer]}")
    document = {"outboxId": letter.id, "answer": answer.value}
    desk.out.answer(document, f"{letter.id} is on its way again, as a new revision.")
