"""The progress of a partition: what is in flight, and what a commit may say.

Pure. Records come in the order of the log and end in any order. A commit names the lowest one that has
not ended, never the last one that has; its notes say which later ones have ended all the same, and how
often those that have not have failed.
"""

from collections.abc import Iterable, Mapping, Sequence

from carteiro.tickets.consume.notes import Noted, note_down

_ALWAYS_FITS = 8_000  # records, whatever became of them


class Offsets:
    """The records of one partition that one worker has seen since the partition became its own.

    ``noted`` is what the last commit said. Until a record has come, nothing can be committed.
    """

    def __init__(self, noted: Noted | None = None) -> None:
        self._noted = noted
        self._open: dict[int, int] = {}  # offset -> failures; in the order of the log
        self.start: int | None = None  # the first that came
        self.end: int | None = None  # after the last that came
        # The notes of the last commit are near the most that a broker keeps.
        self.is_noted_full = False

    def take(self, offsets: Sequence[int]) -> Mapping[int, int]:
        """Records have come, in the order of the log: the failures so far of each that still needs something."""
        if self.end is None:
            self.start = offsets[0]
        elif offsets[0] < self.end:  # seen already
            offsets = [each for each in offsets if each >= self.end]
        if not offsets:
            return {}
        self.end = offsets[-1] + 1
        noted = self._noted
        if noted is None or offsets[0] >= noted.end:
            needed = dict.fromkeys(offsets, 0)
        else:
            needed = {at: noted.failures.get(at, 0) for at in offsets if not noted.is_done(at)}
        self._open |= needed
        return needed

    def failed(self, offset: int, failures: int) -> None:
        """So often it has failed by now."""
        self._open[offset] = failures

    def finish(self, offsets: Iterable[int]) -> None:
        """They need nothing any more: they are done, or dead letters that others know of."""
        for each in offsets:
            del self._open[each]

    @property
    def unfinished(self) -> int:
        """The number of records that have come and not ended."""
        return len(self._open)

    @property
    def is_idle(self) -> bool:
        """All that came has ended."""
        return not self._open

    @property
    def committable(self) -> int | None:
        """The lowest offset that is not done; None before any record."""
        return next(iter(self._open), self.end)

    @property
    def span(self) -> int:
        """From the lowest that is not done to the last that came: what a commit may have to describe."""
        lowest = self.committable
        return 0 if lowest is None or self.end is None else self.end - lowest

    @property
    def is_mostly_done(self) -> bool:
        """A few hold up all the others: then it is they who are ill, not what they need."""
        return len(self._open) * 50 <= self.span

    def commit(self) -> tuple[int, str] | None:
        """Return the commit of now: the offset, and the notes that go with it."""
        lowest = self.committable
        if lowest is None or self.end is None:
            return None
        noted = self._all_noted(lowest, self.end)
        notes, is_nearly_full = note_down(noted) if noted.end > lowest else ("", False)
        self.is_noted_full = is_nearly_full and self.end - lowest > _ALWAYS_FITS
        return lowest, notes

    def _all_noted(self, lowest: int, end: int) -> Noted:
        """Return all that is known, and what the last commit said of records that have not come yet."""
        if self._noted is None or self._noted.end <= end:
            return Noted(lowest, end, self._open)
        to_come = {at: times for at, times in self._noted.failures.items() if at >= end}
        return Noted(lowest, self._noted.end, self._open | to_come)
