"""Finding and showing messages, shared by the commands."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import typer

from carteiro.api.email_documents import summary
from carteiro.cli.desk import Desk
from carteiro.cli.exit_codes import ExitCode, NotFound
from carteiro.cli.printing import Column
from carteiro.model import EMAIL, MessageId, StoredMessage, parse_message_id
from carteiro.runtime.messages import find_message

COLUMNS: tuple[Column[StoredMessage], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("tenant", lambda row: row.tenant),
    Column("status", lambda row: row.state, is_whole=True),
    Column("to", lambda row: row.to or ("(erased)" if row.kind == EMAIL else row.kind)),
    Column("subject", lambda row: row.subject),
    Column("attempts", lambda row: row.attempts),
    Column("error", lambda row: row.failure.code if row.failure else None),
    Column("created", lambda row: row.created_at, is_whole=True),
)


Answer = TypeVar("Answer", bound=StrEnum)

_ANSWERS: tuple[Column[tuple[MessageId, StrEnum]], ...] = (
    Column("id", lambda row: row[0], is_whole=True),
    Column("answer", lambda row: row[1]),
)


def print_answers(
    desk: Desk, answers: Sequence[tuple[MessageId, Answer]], codes: Mapping[Answer, ExitCode]
) -> None:
    """Print the answer about each message, and exit with the worst of their codes."""
    rows: Sequence[tuple[MessageId, StrEnum]] = answers
    desk.out.rows(rows, _ANSWERS, lambda row: {"outboxId": row[0], "answer": row[1].value})
    code = max(codes[answer] for _, answer in answers)
    if code is not ExitCode.OK:
        raise typer.Exit(code)


def message_document(message: StoredMessage) -> dict[str, Any]:
    """A message without its content and events, as the HTTP API shows it."""
    return summary(message).model_dump(mode="json", by_alias=True)


def message_id(given: str) -> MessageId:
    """Parse an id; `NotFound` if it is not one."""
    identity = parse_message_id(given)
    if identity is None:
        raise no_message(given)
    return identity


def no_message(given: str) -> NotFound:
    """The error for a message that does not exist, or belongs to another tenant; both look alike."""
    return NotFound(f"there is no message {given!r}: carteiro ls lists the newest")


async def known_message(desk: Desk, given: str, *, tenant: str | None) -> StoredMessage:
    """The message with this id; `NotFound` if there is none, or it is not this tenant's."""
    message = await find_message(desk.backend.reading, given, tenant=tenant)
    if message is None:
        raise no_message(given)
    return message
