"""Finding and showing dead letters, shared by the commands."""

from typing import Any

import orjson

from carteiro.cli.desk import Desk
from carteiro.cli.exit_codes import NotFound
from carteiro.cli.messages import message_id
from carteiro.cli.printing import Column
from carteiro.model import DeadLetter


def content_of(letter: DeadLetter) -> dict[str, Any]:
    """The fields of its content; none if it was pruned, or for a task without fields."""
    try:
        content = orjson.loads(letter.content)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def address_of(letter: DeadLetter) -> str:
    """The recipient's address; for a task, its kind."""
    return str(content_of(letter).get("to") or letter.kind)


COLUMNS: tuple[Column[DeadLetter], ...] = (
    Column("id", lambda row: row.id, is_whole=True),
    Column("tenant", lambda row: row.tenant),
    Column("to", address_of),
    Column("reason", lambda row: row.reason),
    Column("code", lambda row: row.failure.code),
    Column("why", lambda row: row.failure.reason),
    Column("failures", lambda row: row.failed_attempts),
    Column("died", lambda row: row.moved_at, is_whole=True),
    Column("redriven", lambda row: row.redriven_at, is_whole=True),
)


async def known_letter(desk: Desk, given: str, *, tenant: str | None) -> DeadLetter:
    """The dead letter of this message; `NotFound` if there is none, or it is not this tenant's."""
    letter = await desk.backend.dead_letters.show(message_id(given))
    if letter is None or tenant not in {None, letter.tenant}:
        raise NotFound(f"there is no dead letter {given!r}: carteiro dead ls lists the newest")
    return letter
