"""What could not be delivered, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from carteiro.model import DeadLetter, DeadReason, MessageId, RedriveAnswer, TenantId
from carteiro.policy import lifecycle
from carteiro.stores.memory.tables import Tables, to_datetime


class MemoryDeadLetters:
    """The `DeadLetters` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def find(
        self, *, tenant: TenantId | None = None, reason: DeadReason | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        """The newest entries that match."""
        found = [
            letter
            for letter in self._tables.dead_letters.values()
            if tenant in {None, letter.tenant} and reason in {None, letter.reason}
        ]
        newest = sorted(found, key=lambda letter: (letter.moved_at, letter.id), reverse=True)
        return newest[:limit]

    async def show(self, message: MessageId) -> DeadLetter | None:
        """The entry of one message."""
        return self._tables.dead_letters.get(message)

    async def redrive(self, ids: Sequence[MessageId], *, by: str) -> list[RedriveAnswer]:
        """Send them round again; ``by`` says on whose word."""
        now = self._tables.now()
        return [self._redrive_one(each, by, now) for each in ids]

    def _redrive_one(self, message: MessageId, by: str, now: int) -> RedriveAnswer:
        letter = self._tables.dead_letters.get(message)
        if letter is None:
            return RedriveAnswer.NOT_FOUND
        row = self._tables.rows[message]
        redriven = letter.redriven_at is not None
        answer, change = lifecycle.redrive(row.entry, by=by, redriven=redriven, now=now)
        if change is not None:
            self._tables.apply(row, change, now)
            self._tables.dead_letters[message] = replace(letter, redriven_at=to_datetime(now))
            self._tables.enqueue(row, now)
        return answer
