"""Admission of a worker: the slots of its pools, quiet for a job that may kill it, few orphans."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from carteiro.jobs.kind import Pool
from carteiro.model import ZERO, Lease, LeasedJob, TenantId
from carteiro.path.judge import is_orphan
from carteiro.policy.suspicion import Ration

if TYPE_CHECKING:
    from carteiro.engine.run import Run

_A_MOMENT_S = 0.001  # far less than a provider across a network takes
_SOME_TIME_S, _MOST_TIMES = 0.004, 5  # while calls wait for a connection
_MOST_AHEAD = 1000  # jobs: a larger claim is not cheaper
_MOST_SIZE_AHEAD = 32 * 1024 * 1024  # characters of contents, which take three times as many bytes
_LARGEST_OF = 8  # slots to one orphan, in the largest round
_PROMPT_OF = 8  # slots to one job that is claimed for a slot while others wait for one
_LEAST_ROUND_S = 0.02
_FORGETS_AFTER = 30  # rounds without an orphan


class Slots:
    """The slots of one pool, the waiters for one, and how many jobs may be claimed before one is free."""

    def __init__(self, pool: Pool, *, ahead: timedelta = ZERO) -> None:
        self.slots = pool.slots
        self.kinds = {kind.name: kind for kind in pool.kinds}
        self.waiting: deque[Run] = deque()  # claimed ahead
        self._taken = 0
        # Slots of calls that only wait for a connection.
        self._spare = self.slots - sum(kind.connections or self.slots for kind in pool.kinds)
        self._freed = asyncio.Event()
        self._is_awaited = False  # a flag costs less than the event, for each job
        self._has_waiting = asyncio.Event()
        is_prompt = any(kind.start_within is not None for kind in pool.kinds)
        self._ahead_s = 0.0 if is_prompt else ahead.total_seconds()
        self._most_ahead = _MOST_AHEAD
        self._ahead = 0
        self._ended = 0  # since it was last counted
        self._counted_at = 0.0

    @property
    def free(self) -> int:
        """The number of free slots."""
        return self.slots - self._taken

    @property
    def has_spare(self) -> bool:
        """True if there are more slots than connections: calls wait for one."""
        return self._spare > 0

    @property
    def wanted(self) -> int:
        """The number of jobs to claim: the free slots, but no more than calls are possible.

        A few even if jobs that were claimed ahead wait for all of them: tenants with a limit are claimed for slots
        only, and would else have to wait for the end of everybody's backlog.
        """
        chains = [kind.chain for kind in self.kinds.values()]
        limits = [self.slots if chain is None else chain.most_at_once for chain in chains]
        possible = sum(self.slots if limit is None else limit for limit in limits)
        prompt = max(1, self.slots // _PROMPT_OF) if self.waiting else 0
        return max(prompt, min(self.free - len(self.waiting), possible))

    @property
    def wanted_ahead(self) -> int:
        """The number of jobs to claim in addition, which wait for a slot."""
        return 0 if self.is_limited else max(0, self._ahead - len(self.waiting))

    @property
    def is_limited(self) -> bool:
        """True if fewer calls are possible than there are slots."""
        chains = [kind.chain for kind in self.kinds.values()]
        return any(chain is not None and chain.most_at_once is not None for chain in chains)

    def held_for(self) -> timedelta:
        """The time for which nothing can be attempted, as no provider can be called."""
        chains = [kind.chain for kind in self.kinds.values()]
        return min(ZERO if chain is None else chain.held_for() for chain in chains)

    def take(self, jobs: int) -> None:
        """Take slots for claimed jobs."""
        self._taken += jobs

    def give_back(self, slots: int = 1) -> None:
        """Free slots."""
        self._taken -= slots
        self._ended += slots
        if self._is_awaited:
            self._is_awaited = False
            self._freed.set()

    def got(self, jobs: Sequence[LeasedJob], *, wanted: int) -> None:
        """A claim gave these: no more than there were slots for, and none are asked for ahead for a while.

        Where jobs are large, fewer are asked for ahead.
        """
        if jobs:
            size = sum(map(len, [job.content or "" for job in jobs])) // len(jobs)
            self._most_ahead = min(_MOST_AHEAD, _MOST_SIZE_AHEAD // max(1, size))
        self._ahead = min(self._ahead, self._most_ahead) if len(jobs) > wanted else 0

    def queue(self, prompt: "list[Run]", ahead: "list[Run]") -> None:
        """They wait for a slot: those that were claimed for one before all others, those claimed ahead after them."""
        self.waiting.extendleft(reversed(prompt))
        self.waiting.extend(ahead)
        self._has_waiting.set()

    async def next_waiting(self) -> "list[Run]":
        """Wait until a slot is free for jobs that wait for one; as many as there are slots."""
        while not self.waiting:
            self._has_waiting.clear()
            await self._has_waiting.wait()
        await self.has_free_slot()
        return [self.waiting.popleft() for _ in range(min(self.free, len(self.waiting)))]

    def take_waiting(self, before: float) -> "list[Run]":
        """Remove the jobs that were claimed before this time and wait for a slot."""
        taken = [run for run in self.waiting if run.received < before]
        self.waiting = deque(run for run in self.waiting if run.received >= before)
        return taken

    async def has_free_slot(self) -> None:
        """Wait for a free slot; while most are taken, a moment longer, so that others become free too.

        Without that wait, jobs that end one by one would each need a separate claim.
        """
        while self.free <= 0:  # negative while outcomes wait to be stored
            await self._slot_freed()
        if self.free < self.slots / 2:
            await asyncio.sleep(_A_MOMENT_S)
        await self._most_spare_are_free()

    async def has_room(self) -> None:
        """The same for a claim: jobs that wait for a slot count, too, and half of those that may be claimed ahead."""
        while not self._has_room:
            await self._slot_freed()
            if not self._has_room:
                await asyncio.sleep(_A_MOMENT_S)
        if self._room < (self.slots + self._ahead) / 2:
            await asyncio.sleep(_A_MOMENT_S)
        await self._most_spare_are_free()
        self._count_pace()

    async def _most_spare_are_free(self) -> None:
        """While calls wait for a connection nobody misses their slots: wait some time longer, for longer lists."""
        for _ in range(_MOST_TIMES):
            if self.free * 2 >= self._spare:
                return
            await asyncio.sleep(_SOME_TIME_S)

    async def has_freed_slot(self, *, within: timedelta) -> None:
        """Wait until a job ends and a moment for others, or until ``within`` has passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within.total_seconds()):
                await self._slot_freed()
                await asyncio.sleep(_A_MOMENT_S)

    async def _slot_freed(self) -> None:
        self._freed.clear()
        self._is_awaited = True
        await self._freed.wait()

    @property
    def _room(self) -> int:
        return self.free + self._ahead - len(self.waiting)

    @property
    def _has_room(self) -> bool:
        return self._room > 0 and self._room * 2 >= self._ahead

    def _count_pace(self) -> None:
        """Allow as many jobs ahead as the pool works off in its time, at its latest pace, beyond those that run.

        A pool whose jobs take longer than that gets none: in that time, no slot ends more than one of them.
        """
        now = time.monotonic()
        past_s = now - self._counted_at
        if past_s >= self._ahead_s > 0:
            worked_off = self._ended * self._ahead_s / past_s
            self._ahead = max(0, min(self._most_ahead, round(worked_off) - self.slots))
            self._ended, self._counted_at = 0, now


class Quiet:
    """Runs a job that may kill its worker while nothing else of the process runs or is claimed.

    Claimed jobs would die with it, and soon look equally suspect: so a running claim
    counts as running, and a second suspect is not kept next to the first. The others wait, so
    suspects have a `Ration` of the worker's time, counted from their claim to their end.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, debt: timedelta = ZERO
    ) -> None:
        self._clock = clock
        self._ration = Ration(clock(), debt=debt.total_seconds())
        self._running = 0  # jobs, from their claim on, and running claims
        self._suspect: Place | None = None  # that waits or runs alone
        self._changed = asyncio.Event()

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """A claim is running: a suspect waits for its jobs."""
        self._running += 1
        try:
            yield
        finally:
            self.leave()

    def enter(self, jobs: int) -> None:
        """These run alongside others; each is to `leave`."""
        self._running += jobs

    def place_alone(self, tenant: TenantId) -> "Place | timedelta":
        """A place for a suspect, or how long it is to be given back for."""
        now = self._clock()
        wait = self._ration.wait(tenant, now, is_taken=self._suspect is not None)
        if wait > 0:
            return timedelta(seconds=wait)
        self._suspect = Place(self, suspect_of=tenant, since=now)
        return self._suspect

    async def is_over(self) -> None:
        """Wait until no suspect waits or runs alone."""
        while self._suspect is not None:
            await self._change()

    async def is_alone(self, patience: timedelta) -> bool:
        """Wait until nothing else runs; False after ``patience``: the other jobs have waited long enough."""
        try:
            async with asyncio.timeout(patience.total_seconds()):
                while self._running:
                    await self._change()
        except TimeoutError:
            return False
        return True

    def leave(self, jobs: int = 1) -> None:
        """Jobs or a claim have ended."""
        self._running -= jobs
        self._changed.set()

    def leave_alone(self, tenant: TenantId, since: float) -> None:
        """The suspect has ended or was given back, or others run alongside it from now on."""
        now = self._clock()
        self._ration.spent(tenant, now, seconds=now - since)
        self._suspect = None
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Place:
    """A place in the quiet, from the claim of a job to its end."""

    __slots__ = ("_quiet", "_since", "_suspect_of")

    def __init__(
        self, quiet: Quiet, *, suspect_of: TenantId | None = None, since: float = 0.0
    ) -> None:
        self._quiet = quiet
        self._suspect_of = suspect_of
        self._since = since

    @property
    def is_alone(self) -> bool:
        """True while others wait for it."""
        return self._suspect_of is not None

    def share(self) -> None:
        """Let others run alongside it from now on."""
        if self._suspect_of is not None:
            self._quiet.leave_alone(self._suspect_of, self._since)
            self._suspect_of = None
            self._quiet.enter(1)

    def leave(self) -> None:
        """End the place."""
        if self._suspect_of is not None:
            self._quiet.leave_alone(self._suspect_of, self._since)
        else:
            self._quiet.leave()


class Orphans:
    """Limits the jobs of a dead worker that run at a time; the others are given back for later rounds.

    One of them may have killed it. If it kills again, jobs claimed together with it are suspected, too. So the first
    round is of one job, and each round after which the worker lives is twice as large, up to an eighth of the slots.
    """

    def __init__(
        self, slots: int, *, longest: timedelta, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._largest = max(1, slots // _LARGEST_OF)
        self._longest_s = longest.total_seconds()  # a round
        self._clock = clock
        self._since: dict[Lease, float] = {}  # of those that run
        self._size = 1  # of a round
        self._round_s = _LEAST_ROUND_S  # the last one took
        self._back_at = clock()

    @property
    def are_to_come(self) -> bool:
        """True while some that were given back are not due."""
        return self._clock() < self._back_at

    def surplus(self, jobs: Sequence[LeasedJob]) -> list[tuple[timedelta, list[Lease]]]:
        """Those of a claim that are to be given back before the others run, by the delay of their round."""
        orphans = [job.lease for job in jobs if job.claims > 1 and is_orphan(job)]
        if not orphans:
            return []
        now = self._clock()
        if not self._since and now > self._back_at + _FORGETS_AFTER * self._longest_s:
            self._size = 1  # another worker has died
        kept = max(0, self._size - len(self._since))
        self._since.update(dict.fromkeys(orphans[:kept], now))
        rounds = list(self._rounds(orphans[kept:], now))
        if rounds:
            self._back_at = max(self._back_at, now + rounds[-1][0].total_seconds())
        return rounds

    def _rounds(
        self, leases: Sequence[Lease], now: float
    ) -> Iterator[tuple[timedelta, list[Lease]]]:
        running_s = now - min(self._since.values(), default=now)
        wait = timedelta(seconds=min(self._longest_s, max(self._round_s, running_s)))
        size, delay = self._size, wait
        while leases:
            yield delay, list(leases[:size])
            leases = leases[size:]
            size, delay = min(2 * size, self._largest), delay + wait

    def end(self, lease: Lease) -> None:
        """The job has ended, or its round need not wait for it any longer; other jobs are ignored."""
        since = self._since.pop(lease, None)
        if since is None:
            return
        self._round_s = min(self._longest_s, max(_LEAST_ROUND_S, self._clock() - since))
        if not self._since:
            self._size = min(2 * self._size, self._largest)
