"""Commits, now and then, and bounds on how far a worker goes ahead of them."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from carteiro.config import TicketSettings
from carteiro.tickets.consume.lanes import Partition, Work
from carteiro.tickets.consume.ports import Commit, TicketLog
from carteiro.tickets.ticket import Part

_SHORTEST_PAUSE_S = 0.02  # after a commit of few records, or one that was refused
_FEW = 1000  # records
_MOMENT_S = 0.005  # without a record, after which no more is expected for now
_MOST_UNFINISHED = 10_000  # tickets of a partition in memory, however small they are
MOST_UNNOTED = 20_000  # records that are read before what became of those before them is committed


@dataclass
class Committer:
    """Commits what has ended: now and then while there is more, at once when there is not, or reading would stop.

    ``hurry`` ends the wait of work that holds up its partition.
    """

    settings: TicketSettings
    log: TicketLog
    partitions: Mapping[Part, Partition]
    hurry: Callable[[Work], None]
    _something_changed: asyncio.Event = field(default_factory=asyncio.Event)
    _is_urgent: asyncio.Event = field(default_factory=asyncio.Event)
    _has_changed: bool = False  # as the event, but cheap to ask
    _is_looking: bool = False  # whether more comes to a partition that has none left

    def changed(self) -> None:
        """Something has ended, or failed."""
        if not self._has_changed:
            self._has_changed = True
            self._something_changed.set()

    def look_around(self) -> None:
        """Several may have ended: commit soon if nothing is left, and have more brought where there is room."""
        if self._has_changed:
            for partition in self.partitions.values():
                if partition.unnoted * 2 >= MOST_UNNOTED:
                    self._is_urgent.set()
                elif partition.offsets.is_idle and not self._is_looking:
                    self._look_again(partition)
                if partition.is_paused:
                    self.bound(partition)

    def _look_again(self, partition: Partition) -> None:
        """The next list is often on its way, and none is brought while a commit is made."""
        self._is_looking = True
        end = partition.offsets.end
        asyncio.get_running_loop().call_later(_MOMENT_S, self._commit_if_idle, partition, end)

    def _commit_if_idle(self, partition: Partition, end: int | None) -> None:
        self._is_looking = False
        if partition.offsets.is_idle and partition.offsets.end != end:
            self._look_again(partition)
        elif partition.offsets.is_idle:
            self._is_urgent.set()

    def bound(self, partition: Partition) -> None:
        """Pause a partition that has come too far ahead of its oldest ticket; resume it at half of that."""
        if not self._is_far(partition):
            if partition.is_paused:
                partition.is_paused = False
                self.log.resume([partition.part])
            return
        if not partition.is_paused and partition.is_open:
            partition.is_paused = True
            self.log.pause([partition.part])
        # A few hold it up, while nearly all that came has ended: they need not wait, so that they end, too.
        if partition.is_paused and partition.offsets.is_mostly_done:
            for work in list(partition.waiting):
                self.hurry(work)

    def _is_far(self, partition: Partition) -> bool:
        offsets, parts = partition.offsets, 2 if partition.is_paused else 1
        held = sum(each.bytes for each in self.partitions.values())
        return (
            offsets.span * parts >= self.settings.window
            or offsets.unfinished * parts >= _MOST_UNFINISHED
            or partition.unnoted * parts >= MOST_UNNOTED
            or held * parts >= self.settings.window_bytes
            or offsets.is_noted_full
        )

    async def run(self) -> None:
        """Commit until it is cancelled; the last commit is made when the partitions are given back."""
        while True:
            await self._something_changed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.settings.commit_every.total_seconds()):
                    await self._is_urgent.wait()
            self._something_changed.clear()
            self._has_changed = False
            many = await self._commit()
            self._is_urgent.clear()  # what was urgent meanwhile may be committed by now
            self.look_around()
            if many < _FEW:
                await asyncio.sleep(_SHORTEST_PAUSE_S)

    async def _commit(self) -> int:
        """Return the number of records that it says something new of."""
        partitions = [each for each in self.partitions.values() if each.is_live]
        commits = commits_of(partitions)
        ends = {each: each.offsets.end for each in partitions}
        many = sum(each.unnoted for each in partitions)
        if commits and not await self.log.commit([*commits.values()]):
            self._something_changed.set()
            many = 0
        else:
            for each, end in ends.items():
                each.noted_end = end  # also where the commit before says all there is to say
            for each, commit in commits.items():
                each.committed = (commit.offset, commit.notes)
        for partition in partitions:
            if partition.is_paused:
                self.bound(partition)
        return many


def commits_of(partitions: Iterable[Partition]) -> dict[Partition, Commit]:
    """Return the commits of partitions that have something new to commit."""
    return {
        each: Commit(each.part, *now)
        for each in partitions
        if (now := each.offsets.commit()) is not None and now != each.committed
    }
