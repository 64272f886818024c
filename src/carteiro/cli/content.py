"""The options that set the content of an e-mail, shared by commands."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from carteiro.cli.files import read_words


@dataclass(frozen=True)
class Content:
    """Addresses, subject and bodies; None: not given."""

    to: Annotated[str | None, typer.Option(help="Recipient address.")] = None
    subject: Annotated[str | None, typer.Option(help="Subject.")] = None
    text: Annotated[str | None, typer.Option(help="Plain text body; - reads stdin.")] = None
    html: Annotated[str | None, typer.Option(help="HTML body; - reads stdin.")] = None
    text_file: Annotated[
        Path | None, typer.Option(help="File of the plain text body; - reads stdin.")
    ] = None
    html_file: Annotated[
        Path | None, typer.Option(help="File of the HTML body; - reads stdin.")
    ] = None
    sender: Annotated[str | None, typer.Option("--from", help="Sender address.")] = None
    reply_to: Annotated[str | None, typer.Option(help="Reply-To address.")] = None

    def as_fields(self) -> dict[str, Any]:
        """The given ones, as fields of an e-mail."""
        fields = {
            "to": self.to,
            "subject": self.subject,
            "text": read_words(self.text, self.text_file, flag="--text"),
            "html": read_words(self.html, self.html_file, flag="--html"),
            "from": self.sender,
            "replyTo": self.reply_to,
        }
        return {name: each for name, each in fields.items() if each is not None}
