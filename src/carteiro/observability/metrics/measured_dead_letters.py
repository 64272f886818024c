"""Dead letters with their ages observed when they are redriven or dropped; nothing else changes.

Ages are read by id, one page at a time: nothing is counted or listed for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from carteiro.model import MessageId, RedriveAnswer, Revision
from carteiro.observability.metrics.tally import Tally
from carteiro.ports.dead_letters import DeadLetters


def measured_dead_letters(
    letters: DeadLetters, tally: Tally, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> DeadLetters:
    """Return the same port, with ages observed. ``now`` is this machine's: a second off does not matter."""
    return cast("DeadLetters", _MeasuredDeadLetters(letters, tally, now))


class _MeasuredDeadLetters:
    def __init__(self, letters: DeadLetters, tally: Tally, now: Callable[[], datetime]) -> None:
        self._letters = letters
        self._tally = tally
        self._now = now

    def __getattr__(self, name: str) -> object:
        """Pass on methods that change no entry."""
        return getattr(self._letters, name)

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
        """As the port; redriven letters stay, and were observed when redriven."""
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
