"""The next ticket to run: one of a key at a time, keys in parallel, types within their limits.

No clock, no I/O: `Lanes` is asked for the next piece of work and hears when one has ended.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from carteiro.config import TicketSettings
from carteiro.policy.breaker import Round
from carteiro.policy.retry import PRESETS
from carteiro.tickets.consume.handler_error import HandlerError
from carteiro.tickets.consume.handlers import Function, Handler
from carteiro.tickets.consume.offsets import Offsets
from carteiro.tickets.consume.pauses import TypeHealth
from carteiro.tickets.dead_letters.envelope import redrives_of
from carteiro.tickets.deaths import Death, Trouble
from carteiro.tickets.ticket import Part, TaskType, Ticket, Unreadable


class Line:
    """The tickets of one type that could start now, and how they are worked on."""

    def __init__(self, handler: Handler, settings: TicketSettings) -> None:
        usual = replace(PRESETS["tickets"], max_attempts=settings.max_retries_before_dlq)
        self.type: TaskType = handler.type
        self.function: Function = handler.function
        self.policy = handler.policy or usual
        self.time_limit = (handler.time_limit or settings.time_limit).total_seconds()
        self.limit = handler.concurrency
        self.health = TypeHealth(settings)
        self.end_of_pause: asyncio.TimerHandle | None = None
        self.ready: deque[Work] = deque()
        self.running = 0
        self.returned: list[Work] = []  # by their handlers, in this order, and not settled yet
        self.done_at_once = 0  # tickets that never failed

    def take(self, now: float) -> "Work | None":
        """The next one that may be started now."""
        while self.ready and (self.limit is None or self.running < self.limit):
            if self.health.is_paused:
                if self.health.breaker.wait(now) > 0:
                    return None
                self._prefer_new()
            work = self.ready.popleft()
            if work.partition.is_open:
                if self.health.is_paused:
                    work.began = self.health.breaker.begin(now)
                return work
        return None

    def _prefer_new(self) -> None:
        """In a pause one that never failed comes first, if there is one: others would only use up their attempts."""
        place = next((at for at, work in enumerate(self.ready) if not work.failures), 0)
        work = self.ready[place]
        del self.ready[place]
        self.ready.appendleft(work)


class Partition:
    """A partition while it is ours; what belongs to one that is not any more leaves no trace."""

    def __init__(self, part: Part, offsets: Offsets, start: int | None = None) -> None:
        self.part = part
        self.start = start  # where its last owner ended, if that is known
        self.offsets = offsets
        # A key that is here has a ticket before the others.
        self.lanes: dict[bytes, deque[Work] | None] = {}
        self.untold: set[Work] = set()  # failed, or done at last, and Redis has not heard of it
        self.waiting: set[Work] = set()  # for another try
        self.dying: list[Work] = []  # their burial begins with the next turn of the loop
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
        self.is_sure = False  # all that comes is beyond it

    @property
    def unnoted(self) -> int:
        """The number of records since the last commit."""
        end = self.offsets.end
        noted = self.offsets.start if self.noted_end is None else self.noted_end
        return 0 if end is None or noted is None else end - noted

    @property
    def held_keys(self) -> int:
        """The number of keys that wait for something else than their turn."""
        own = (self.untold, self.waiting, self.dying, self.burials, self.held)
        return sum(map(len, own))


class Work:
    """A record on its way to its end; ``line`` is None if it is not a ticket, or has no handler.

    One is made for each ticket: slots take half the time of attributes, and `works_of` fills them.
    """

    __slots__ = (
        *("ticket", "partition", "line", "offset", "key", "size", "redrives", "failures"),
        *("error", "death", "began", "timer"),
    )

    ticket: Ticket | Unreadable
    partition: Partition
    line: Line | None
    offset: int
    key: bytes
    size: int  # bytes
    redrives: int  # how often it was republished: the archive waits to hear of its end
    failures: int
    error: HandlerError | None  # of its handler, until it is counted
    death: Death | None
    began: Round | None  # None: not as the trial of a pause
    timer: asyncio.TimerHandle | None


def works_of(
    tickets: Iterable[Ticket | Unreadable], partition: Partition, lines: Mapping[TaskType, Line]
) -> list[Work]:
    """The work of records of one partition; made here, since a call for each would double its cost."""
    works = []
    for ticket in tickets:
        work = Work()
        _, _, work.offset, key, body, headers, _ = ticket.record
        work.ticket, work.partition = ticket, partition
        work.line = lines.get(ticket.type) if ticket.__class__ is Ticket else None
        work.key = key = key or ticket.id.encode()
        work.size = len(body or b"") + len(key)
        work.redrives = work.failures = 0
        work.error = work.death = work.began = work.timer = None
        if headers:
            work.size += sum(len(name) + len(said or b"") for name, said in headers)
            work.redrives = redrives_of(headers)
        works.append(work)
    return works


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

    def put(self, works: Iterable[Work]) -> None:
        """They have come; each starts when all of its key before it have ended."""
        for work in works:
            lanes, key = work.partition.lanes, work.key
            if key not in lanes:
                lanes[key] = None
                if work.line is None or work.failures:  # a death has one or the other
                    self.ready(work)
                else:
                    work.line.ready.append(work)
            elif (behind := lanes[key]) is not None:
                behind.append(work)
            else:
                lanes[key] = deque([work])

    def ready(self, work: Work) -> None:
        """It could start now."""
        if work.death is not None:
            self._bury(work, work.death)
        elif work.line is not None:
            if work.failures:
                work.ticket.attempt = work.failures + 1  # type: ignore[misc,union-attr] # the handler has it from now on
            work.line.ready.append(work)

    def ended(self, works: Iterable[Work]) -> None:
        """They need nothing any more: the next one of each key could start."""
        for work in works:
            lanes = work.partition.lanes
            behind = lanes[work.key]
            if behind:
                self.ready(behind.popleft())
            else:
                del lanes[work.key]

    def next(self, now: float) -> tuple[Line, Work] | None:
        """Work that may be started now, types taking turns; None: there is none."""
        for _ in range(len(self._turns)):
            line = self._turns[0]
            self._turns.rotate(-1)
            if (work := line.take(now)) is not None:
                return line, work
        return None
