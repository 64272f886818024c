"""Dead letters whose ages are noted when they are redriven or leave; nothing else changes.

An age is read by id, for a page at a time: nothing is counted or listed for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from carteiro.model import (
    Cursor,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    MessageId,
    Page,
    RedriveAnswer,
    Revision,
    TenantId,
)
from carteiro.observability.metrics.tally import Tally
from carteiro.ports.dead_letters import DeadLetters, GroupBy

_ANY = DeadFilter()


class MeasuredDeadLetters:
    """The dead letters behind it. ``now`` is this machine's: an age a second off is still an age."""

    def __init__(
        self,
        letters: DeadLetters,
        tally: Tally,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._letters = letters
        self._tally = tally
        self._now = now

    async def redrive(
        self, ids: Sequence[MessageId], *, by: str, revision: Revision | None = None
    ) -> list[RedriveAnswer]:
        """As the port."""
        moved = await self._letters.moved(ids)
        answers = await self._letters.redrive(ids, by=by, revision=revision)
        redriven = (
            each
            for each, answer in zip(ids, answers, strict=True)
            if answer is RedriveAnswer.REDRIVEN
        )
        self._note(moved, redriven)
        return answers

    async def drop(self, ids: Sequence[MessageId]) -> int:
        """As the port; what is on its way stays, and was noted when it was redriven."""
        moved = await self._letters.moved(ids)
        dropped = await self._letters.drop(ids)
        left = await self._letters.moved(ids) if dropped < len(moved) else {}
        self._note(moved, moved.keys() - left.keys())
        return dropped

    def _note(self, moved: Mapping[MessageId, datetime], ids: Iterable[MessageId]) -> None:
        now = self._now()
        for each in ids:
            if each in moved:
                self._tally.dead_ages.observe(max(0.0, (now - moved[each]).total_seconds()))

    async def find(
        self, wanted: DeadFilter = _ANY, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[DeadLetter]:
        """As the port."""
        return await self._letters.find(wanted, cursor=cursor, limit=limit)

    async def group(self, by: GroupBy, wanted: DeadFilter = _ANY) -> list[DeadGroup]:
        """As the port."""
        return await self._letters.group(by, wanted)

    async def show(self, message: MessageId) -> DeadLetter | None:
        """As the port."""
        return await self._letters.show(message)

    async def outlived(self, *, limit: int = 1000) -> list[MessageId]:
        """As the port."""
        return await self._letters.outlived(limit=limit)

    async def overfull(self, *, most: int, limit: int = 1000) -> list[DeadLetter]:
        """As the port."""
        return await self._letters.overfull(most=most, limit=limit)

    async def restore(self, letters: Sequence[DeadLetter]) -> int:
        """As the port."""
        return await self._letters.restore(letters)

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[TenantId, int]]]:
        """As the port."""
        return await self._letters.sizes(top=top)

    async def oldest(self) -> datetime | None:
        """As the port."""
        return await self._letters.oldest()

    async def moved(self, ids: Sequence[MessageId]) -> dict[MessageId, datetime]:
        """As the port."""
        return await self._letters.moved(ids)
