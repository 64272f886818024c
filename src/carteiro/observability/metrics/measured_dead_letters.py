"""Dead letters with their ages observed when they are redriven or dropped; nothing else changes.

Ages are read by id, one page at a time: nothing is counted or listed for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from carteiro.model import Course, MessageId, Redrive, RedriveAnswer, Revision
from carteiro.observability.metrics.tally import Tally
from carteiro.policy.ramp import MOST_WATCHED
from carteiro.ports.dead_letters import DeadLetters
from carteiro.ports.redrives import Redrives


def measured_dead_letters(
    letters: DeadLetters,
    redrives: Redrives,
    tally: Tally,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[DeadLetters, Redrives]:
    """Return the same ports, with ages observed. ``now`` is this machine's: a second off does not matter."""
    measured = _MeasuredDeadLetters(letters, tally, now)
    return cast("DeadLetters", measured), cast("Redrives", _MeasuredRedrives(redrives, measured))


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
        self.note(moved, redriven)
        return answers

    async def drop(self, ids: Sequence[MessageId]) -> int:
        """As the port; redriven letters stay, and were observed when redriven."""
        moved = await self._letters.moved(ids)
        dropped = await self._letters.drop(ids)
        left = await self._letters.moved(ids) if dropped < len(moved) else {}
        self.note(moved, moved.keys() - left.keys())
        return dropped

    def note(self, moved: Mapping[MessageId, datetime], ids: Iterable[MessageId]) -> None:
        """Observe the ages of these entries."""
        now = self._now()
        for each in ids:
            if each in moved:
                self._tally.dead_ages.observe(max(0.0, (now - moved[each]).total_seconds()))


class _MeasuredRedrives:
    def __init__(self, redrives: Redrives, letters: _MeasuredDeadLetters) -> None:
        self._redrives = redrives
        self._letters = letters

    def __getattr__(self, name: str) -> object:
        """Pass on methods that send nothing."""
        return getattr(self._redrives, name)

    async def send(
        self, redrive: Redrive, ids: Sequence[MessageId], course: Course
    ) -> Redrive | None:
        """As the port."""
        moved = await cast("DeadLetters", self._letters).moved(ids)
        sent = await self._redrives.send(redrive, ids, course)
        if sent is None:
            return None
        gone = {*ids}
        if sent.course.redriven - course.redriven < len(gone):  # some were skipped
            _, watched = await self._redrives.watched(sent, limit=MOST_WATCHED)
            at = round(sent.changed_at.timestamp() * 1000)
            gone &= {each.message for each in watched if each.at == at}
        self._letters.note(moved, gone)
        return sent
