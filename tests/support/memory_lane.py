"""A ticket lane in memory: a log, a counter, dead letters, and handlers that follow their tickets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

from carteiro.config import TicketSettings, load
from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.consume.handlers import Function, Permanent, Tickets
from carteiro.tickets.consume.metrics import TicketMetrics
from carteiro.tickets.consume.runner import Runner
from carteiro.tickets.consume.watch import Watch
from carteiro.tickets.ticket import Ticket
from support.ticket_log import MemoryCounter, MemoryDeadLetters, MemoryLog

TICKETS = 10  # different ones, whose target is unreachable: then their type pauses
AT_ONCE = RetryPolicy(max_attempts=3, base=timedelta(milliseconds=1), jitter=0)
NEVER_AGAIN = RetryPolicy(max_attempts=3, base=timedelta(hours=1), jitter=0)


class MemoryLane:
    """A lane with all its parts; the ticket tells the handler what to do."""

    def __init__(
        self, partitions: int = 1, *, retry: RetryPolicy = AT_ONCE, **settings: object
    ) -> None:
        self.log = MemoryLog(partitions)
        self.counter = MemoryCounter()
        self.dead_letters = MemoryDeadLetters()
        self.settings = settings
        self.retry = retry
        self.runs: list[tuple[str, int]] = []
        self.done: list[str] = []
        self.under_way = 0
        self.most_under_way = 0
        self.gates: dict[str, asyncio.Event] = {}
        self.is_out = False
        self.error: Exception = ConnectionError("away")
        self.metrics = TicketMetrics(["BUILD"])
        self.function: Function = self.handle
        self.news = 0  # number of changes to the alerts
        self.watch = Watch(self.metrics, self._count_news)

    def _count_news(self) -> None:
        self.news += 1

    async def handle(self, ticket: Ticket) -> None:
        """Fail as often as the ticket says, wait for its gate if it has one."""
        self.runs.append((ticket.id, ticket.attempt))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if (gate := self.gates.get(ticket.id)) is not None:
                await gate.wait()
            await asyncio.sleep(ticket.fields.get("seconds", 0))
            if self.is_out or ticket.attempt <= ticket.fields.get("fails", 0):
                raise self.error
            if ticket.fields.get("permanent"):
                raise Permanent("never")
            self.done.append(ticket.id)
        finally:
            self.under_way -= 1

    def runner(self, **options: object) -> Runner:
        """A worker of this lane."""
        tickets = Tickets()
        options = {"retry": self.retry, **options}
        tickets.handler("BUILD", **options)(self.function)  # type: ignore[arg-type]
        tickets.handler("TEST", **options)(self.function)  # type: ignore[arg-type]
        return Runner(
            settings_of(**self.settings),
            tickets,
            log=self.log,
            counter=self.counter,
            topic=self.dead_letters,
            watch=self.watch,
        )

    @asynccontextmanager
    async def working(self, **options: object) -> AsyncIterator[Runner]:
        """A worker that runs until the end of the block, and stops in good order."""
        self.log._stopping.clear()
        runner = self.runner(**options)
        running = asyncio.create_task(runner.run())
        try:
            yield runner
        finally:
            runner.stop()
            await running

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.001)


def settings_of(**overrides: object) -> TicketSettings:
    """Those of a small lane, with these changes."""
    given = {"concurrency": 20, "commit_every_ms": 10, "drain_ms": 2000} | overrides
    return load(
        environ={}, overrides={f"tickets.{name}": each for name, each in given.items()}
    ).tickets


def ids(prefix: str, many: int) -> Iterator[str]:
    """Names of tickets."""
    return (f"{prefix}{each}" for each in range(many))
