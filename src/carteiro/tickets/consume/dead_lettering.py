"""Dead letters on their way: the broker has one before the counter forgets it, and before the log may."""

import asyncio
from collections.abc import Callable, Collection
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
    ended: Callable[[Work], None]
    changed: Callable[[], None]

    def start(self, work: Work, death: Death) -> None:
        """Have its dead letter kept; then its key goes on."""
        work.death = death
        if work.partition.is_open:
            task = asyncio.get_running_loop().create_task(self._bury(work, death))
            work.partition.burials[work] = task

    def tell_done(self, work: Work) -> bool:
        """Report to the archive that a republished ticket is done, then let its key go on; False: it never had it."""
        if not (self.settings.dlq_enabled and work.redrives):
            return False
        task = asyncio.get_running_loop().create_task(self._tell_done(work))
        work.partition.burials[work] = task
        return True

    def interrupt(self, partition: Partition) -> None:
        """Stop where they are: the partition is another's, who finds them dead, too."""
        for task in partition.burials.values():
            task.cancel()

    async def drained(self, partitions: Collection[Partition], patience: timedelta) -> None:
        """Wait until none is in flight, or the patience is over."""
        tasks = [task for each in partitions for task in each.burials.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=patience.total_seconds())

    async def _bury(self, work: Work, death: Death) -> None:
        partition = work.partition
        try:
            if not self.settings.dlq_enabled:
                await self._hold(work, death)
                return
            is_whole = await self._publish(death)
            if not partition.is_live:
                return
            await self.counter.ended(work.ticket.id, work.ticket.record.place)
            if partition.is_live:
                self.watch.buried(death, is_whole=is_whole)
                self.ended(work)
        finally:
            del partition.burials[work]

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
                self.ended(work)
        finally:
            del work.partition.burials[work]

    async def _hold(self, work: Work, death: Death) -> None:
        """Keep its key where it is, until somebody decides; the next owner of the partition does not run it, either."""
        ticket, error = death.ticket, scrubbed_start(death.error, SHORT_ERROR)
        if work.line is not None:
            last = LastError(
                death.reason, death.error_type, error, death.failures, death.failed_at_ms
            )
            await self.counter.keep_error(ticket.id, last)
            if not work.partition.is_live:
                return
        trouble = Trouble(ticket.id, ticket.type, death.reason, death.error_type, error)
        work.partition.held.append(trouble)
        self.watch.held(death)
        if work.line is not None:
            used_up = max(work.failures, work.line.policy.max_attempts)
            work.partition.offsets.failed(work.ticket.record.offset, used_up)
            self.changed()

    async def _publish(self, death: Death) -> bool:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return await self.topic.publish(death)
            except PublishFailed as error:
                self.watch.metrics.publish_failed(error.error_type)
            except Exception as error:  # noqa: BLE001 - a bug of ours must be seen, and must not leave it half dead
                log.unexpected("burying", error)
                self.watch.metrics.publish_failed(type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
