"""Dead letters on their way: the broker has one before the counter forgets it, and before the log may.

Those of a partition that die in one turn of the event loop go together: published with one wait, forgotten in
one round trip. One that cannot be published holds up the others for that wait only, then it is tried again alone.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from carteiro.config import TicketSettings
from carteiro.observability import log
from carteiro.tickets import events
from carteiro.tickets.consume.lanes import Partition, Work
from carteiro.tickets.consume.ports import DeadLetterTopic, FailureCounter, LastError
from carteiro.tickets.consume.watch import Watch
from carteiro.tickets.dead_letters.envelope import SHORT_ERROR
from carteiro.tickets.deaths import Death, Trouble
from carteiro.tickets.errors import PublishFailed
from carteiro.tickets.scrubbing import scrubbed_start

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_TELLING_PAUSES_S = (0.5, 2.0)


@dataclass(frozen=True)
class DeadLettering:
    """Publishes dead letters alongside the work, however long that takes; a handler is not run again meanwhile."""

    settings: TicketSettings
    counter: FailureCounter
    topic: DeadLetterTopic
    watch: Watch
    ended: Callable[[Sequence[Work]], None]
    changed: Callable[[], None]

    def start(self, work: Work, death: Death) -> None:
        """Have its dead letter kept; then its key goes on."""
        work.death = death
        partition = work.partition
        if partition.is_open:
            if not partition.dying:
                asyncio.get_running_loop().call_soon(self._begin, partition)
            partition.dying.append(work)

    def tell_done(self, work: Work) -> bool:
        """Report to the archive that a republished ticket is done, then let its key go on; False: it never had it."""
        if not (self.settings.dlq_enabled and work.redrives):
            return False
        task = asyncio.get_running_loop().create_task(self._tell_done(work))
        work.partition.burials[work] = task
        return True

    def interrupt(self, partition: Partition) -> None:
        """Stop where they are: the partition is another's, who finds them dead, too."""
        partition.dying.clear()
        for task in partition.burials.values():
            task.cancel()

    async def drained(self, partitions: Collection[Partition], patience: timedelta) -> None:
        """Wait until none is in flight, or the patience is over."""
        for each in partitions:
            self._begin(each)
        tasks = {task for each in partitions for task in each.burials.values()}
        if tasks:
            await asyncio.wait(tasks, timeout=patience.total_seconds())

    def _begin(self, partition: Partition) -> None:
        works, partition.dying = partition.dying, []
        if works:
            task = asyncio.get_running_loop().create_task(self._bury(partition, works))
            partition.burials |= dict.fromkeys(works, task)

    async def _bury(self, partition: Partition, works: Sequence[Work]) -> None:
        left, pause = [*works], _FIRST_PAUSE_S
        try:
            if not self.settings.dlq_enabled:
                await self._hold(partition, works)
                return
            while True:
                published = await self._published(left)
                if published and partition.is_live:
                    await self.counter.ended(
                        [(w.ticket.id, w.ticket.record.place) for w in published]
                    )
                if not partition.is_live:
                    return
                self._buried(partition, published)
                left = [work for work in left if work not in published]
                if not left:
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
        finally:
            for work in left:
                partition.burials.pop(work, None)

    async def _published(self, works: Sequence[Work]) -> dict[Work, bool]:
        """Those whose dead letter the broker has, with whether all of the ticket is in it."""
        deaths = [work.death for work in works if work.death is not None]
        try:
            results = await self.topic.publish(deaths)
        except Exception as error:  # noqa: BLE001 - a bug of ours must be seen, and must not leave them half dead
            results = [error] * len(deaths)
        for each in results:
            if isinstance(each, PublishFailed):
                self.watch.metrics.publish_failed(each.error_type)
            elif isinstance(each, Exception):
                log.unexpected("burying", each)
                self.watch.metrics.publish_failed(type(each).__name__)
        found = zip(works, results, strict=True)
        return {work: each for work, each in found if not isinstance(each, Exception)}

    def _buried(self, partition: Partition, published: dict[Work, bool]) -> None:
        for work, is_whole in published.items():
            del partition.burials[work]
            if work.death is not None:
                self.watch.buried(work.death, is_whole=is_whole)
        self.ended([*published])

    async def _tell_done(self, work: Work) -> None:
        """Before the commit: killed on the way, it runs again and tells it then. That is worth a few tries, no more."""
        try:
            for pause in (*_TELLING_PAUSES_S, 0.0):
                try:
                    await self.topic.publish_done(work.ticket, redrives=work.redrives)
                    break
                except PublishFailed as error:
                    self.watch.metrics.publish_failed(error.error_type)
                await asyncio.sleep(pause)
            else:
                events.dlq_done_not_told(work.ticket)
            if work.partition.is_live:
                self.ended([work])
        finally:
            del work.partition.burials[work]

    async def _hold(self, partition: Partition, works: Sequence[Work]) -> None:
        """Keep their keys where they are, until somebody decides; the next owner does not run them, either."""
        held = [(work, _last_error(work.death)) for work in works if work.death is not None]
        kept = [(work.ticket.id, last) for work, last in held if work.line is not None]
        if kept:
            await self.counter.keep_errors(kept)
            if not partition.is_live:
                return
        for work, last in held:
            ticket = work.ticket
            trouble = Trouble(ticket.id, ticket.type, last.reason, last.error_type, last.error)
            partition.held.append(trouble)
            if work.death is not None:
                self.watch.held(work.death)
            if work.line is not None:
                used_up = max(work.failures, work.line.policy.max_attempts)
                partition.offsets.failed(work.offset, used_up)
        self.changed()


def _last_error(death: Death) -> LastError:
    error = scrubbed_start(death.error, SHORT_ERROR)
    return LastError(death.reason, death.error_type, error, death.failures, death.failed_at_ms)
