"""The next ticket to run: one of a key at a time, keys in parallel, types within their limits.

No clock, no I/O: `Lanes` is asked for the next piece of work and hears when one has ended.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from datetime import timedelta

from carteiro.policy.breaker import Round
from carteiro.policy.retry import RetryPolicy
from carteiro.tickets.consume.handlers import Function, Handler
from carteiro.tickets.consume.offsets import Offsets
from carteiro.tickets.consume.pauses import PauseTerms, TypeHealth
from carteiro.tickets.dead_letters.envelope import redrives_of
from carteiro.tickets.deaths import Death, Trouble
from carteiro.tickets.ticket import Part, TaskType, Ticket, Unreadable


class Line:
    """The tickets of one type that could start now, and how they are worked on."""

    def __init__(
        self,
        handler: Handler,
        *,
        time_limit: timedelta,
        policy: RetryPolicy,
        terms: PauseTerms | None,
    ) -> None:
        self.type: TaskType = handler.type
        self.function: Function = handler.function
        self.policy = handler.policy or policy
        self.time_limit = (handler.time_limit or time_limit).total_seconds()
        self.limit = handler.concurrency
        self.health = TypeHealth(terms)
        self.end_of_pause: asyncio.TimerHandle | None = None
        self.ready: deque[Work] = deque()
        self.running = 0
        # Tickets that never failed; counted here, it is the one thing that is done for each.
        self.done_at_once = 0

    def pop(self) -> "Work":
        """The next one; in a pause one that never failed, if there is one: others would only use up their attempts."""
        if self.health.is_perfect or not self.health.breaker.is_open:
            return self.ready.popleft()
        place = next((at for at, work in enumerate(self.ready) if not work.failures), 0)
        self.ready.rotate(-place)
        work = self.ready.popleft()
        self.ready.rotate(place)
        return work

    def may_start(self, now: float) -> bool:
        """Return True if one more of its tickets may be started."""
        if self.limit is not None and self.running >= self.limit:
            return False
        health = self.health
        return health.is_perfect or not health.breaker.is_open or health.breaker.wait(now) <= 0


class Partition:
    """A partition while it is ours; what belongs to one that is not any more leaves no trace."""

    def __init__(self, part: Part, offsets: Offsets, start: int | None = None) -> None:
        self.part = part
        self.start = start  # where its last owner ended, if that is known
        self.offsets = offsets
        # A key that is here has a ticket before the others.
        self.lanes: dict[bytes, deque[Work] | None] = {}
        self.waiting: set[Work] = set()  # for another try
        self.burials: dict[Work, asyncio.Task[None]] = {}
        self.held: list[Trouble] = []  # dead, and nowhere to go
        self.is_live = True  # ours
        self.is_open = True  # new work may be started
        self.is_paused = False
        self.bytes = 0  # of what has not ended
        self.committed: tuple[int, str] | None = None
        self.noted_end: int | None = None  # the end of what had come when that was committed
        # Up to here another worker may have come before, and counted failures.
        self.unsure_until: int | None = None

    @property
    def unnoted(self) -> int:
        """The number of records since the last commit."""
        end = self.offsets.end
        noted = self.offsets.start if self.noted_end is None else self.noted_end
        return 0 if end is None or noted is None else end - noted

    @property
    def held_keys(self) -> int:
        """The number of keys that wait for something else than their turn."""
        return len(self.waiting) + len(self.burials) + len(self.held)


class Work:
    """A record on its way to its end; ``line`` is None if it is not a ticket, or has no handler."""

    __slots__ = (
        *("ticket", "partition", "line", "key", "size", "redrives"),
        *("failures", "death", "began", "timer"),
    )

    def __init__(
        self, ticket: Ticket | Unreadable, partition: Partition, line: Line | None, failures: int
    ) -> None:
        record = ticket.record
        self.ticket = ticket
        self.partition = partition
        self.line = line
        self.key = record.key or ticket.id.encode()
        self.size = len(record.body or b"") + len(self.key)
        self.redrives = 0  # how often it was republished: the archive waits to hear of its end
        if record.headers:
            self.size += sum(len(name) + len(said or b"") for name, said in record.headers)
            self.redrives = redrives_of(record.headers)
        self.failures = failures
        self.death: Death | None = None
        self.began: Round = 0
        self.timer: asyncio.TimerHandle | None = None


class Lanes:
    """All work that this process has, of all partitions; ``bury`` is called when it is a dead letter's turn."""

    def __init__(self, lines: Iterable[Line], bury: Callable[[Work, Death], None]) -> None:
        self.lines = {line.type: line for line in lines}
        self._turns = deque(self.lines.values())
        self._bury = bury

    @property
    def are_ready(self) -> bool:
        """Something could be started, as far as its type allows."""
        return any(line.ready for line in self._turns)

    def put(self, work: Work) -> None:
        """It has come; it starts when all of its key before it have ended."""
        lanes = work.partition.lanes
        if work.key not in lanes:
            lanes[work.key] = None
            self.ready(work)
            return
        behind = lanes[work.key]
        if behind is None:
            behind = lanes[work.key] = deque()
        behind.append(work)

    def ready(self, work: Work) -> None:
        """It could start now."""
        if work.death is not None:
            self._bury(work, work.death)
        elif work.line is not None:
            work.line.ready.append(work)

    def ended(self, work: Work) -> None:
        """It needs nothing any more: the next one of its key could start."""
        lanes = work.partition.lanes
        behind = lanes[work.key]
        if behind:
            self.ready(behind.popleft())
        else:
            del lanes[work.key]

    def next(self, now: float) -> tuple[Work, Line] | None:
        """Work that may be started now, types taking turns; None: there is none."""
        for _ in range(len(self._turns)):
            line = self._turns[0]
            self._turns.rotate(-1)
            while line.ready and line.may_start(now):
                work = line.pop()
                if work.partition.is_open:
                    return work, line
        return None
