"""What a worker may take on: the slots of its pools, and what runs beside a job that may kill it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from carteiro.jobs.kind import Pool
from carteiro.model import ZERO, Lease, LeasedJob, TenantId
from carteiro.path.judge import is_orphan, may_kill
from carteiro.policy.suspicion import Ration

_A_MOMENT_S = 0.001  # far less than a provider across a network takes


class Slots:
    """The slots of one pool, and who waits for one."""

    def __init__(self, pool: Pool) -> None:
        self.slots = pool.slots
        self.kinds = {kind.name: kind for kind in pool.kinds}
        self._taken: set[Lease] = set()
        self._freed = asyncio.Event()

    @property
    def free(self) -> int:
        """How many may be taken."""
        return self.slots - len(self._taken)

    @property
    def wanted(self) -> int:
        """How many jobs to claim: as many as may be taken, and no more than there can be calls for."""
        chains = [kind.chain for kind in self.kinds.values()]
        limits = [self.slots if chain is None else chain.most_at_once for chain in chains]
        return min(self.free, sum(self.slots if limit is None else limit for limit in limits))

    @property
    def is_limited(self) -> bool:
        """Whether there can be fewer calls than there are slots."""
        chains = [kind.chain for kind in self.kinds.values()]
        return any(chain is not None and chain.most_at_once is not None for chain in chains)

    def held_for(self) -> timedelta:
        """How long nothing of this can be attempted: nobody can be called."""
        chains = [kind.chain for kind in self.kinds.values()]
        return min(ZERO if chain is None else chain.held_for() for chain in chains)

    def take(self, lease: Lease) -> None:
        """Take a slot for a claimed job."""
        self._taken.add(lease)

    def give_back(self, lease: Lease) -> None:
        """Free the slot; again changes nothing."""
        self._taken.discard(lease)
        self._freed.set()

    async def has_free_slot(self) -> None:
        """Wait for a free slot; while most are taken, a moment longer, for others to be freed too.

        Jobs that end one by one would be replaced one by one, each by a claim of its own.
        """
        while self.free <= 0:  # below it while outcomes wait to be stored
            self._freed.clear()
            await self._freed.wait()
        if self.free < self.slots / 2:
            await asyncio.sleep(_A_MOMENT_S)

    async def has_freed_slot(self, *, within: timedelta) -> None:
        """Wait until a job ends, with which another may be begun, and a moment for others; or only so long."""
        self._freed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within.total_seconds()):
                await self._freed.wait()
                await asyncio.sleep(_A_MOMENT_S)


class Turns:
    """Of some jobs one runs at a time, as their `Ration` has it."""

    def __init__(self, clock: Callable[[], float], ration: Ration) -> None:
        self._clock = clock
        self._ration = ration
        self._now: tuple[TenantId, float] | None = None  # whose turn it is, and since when

    @property
    def is_taken(self) -> bool:
        """Whether it is somebody's turn."""
        return self._now is not None

    @property
    def has_line(self) -> bool:
        """Whether some that were put off are still to come."""
        return self._ration.has_line(self._clock())

    def take(self, tenant: TenantId) -> timedelta:
        """Begin a turn; or else how long the job is to be given back for."""
        now = self._clock()
        wait = self._ration.wait(tenant, now, is_taken=self.is_taken)
        if wait <= 0:
            self._now = tenant, now
        return timedelta(seconds=wait)

    def end(self) -> None:
        """The turn is over: the job has ended, was given back, or need not be waited for any longer."""
        if self._now is not None:
            (tenant, since), now = self._now, self._clock()
            self._ration.spent(tenant, now, seconds=now - since)
            self._now = None


class Quiet:
    """Lets a job that may kill its worker run when nothing else of the process runs, or is claimed.

    What is merely claimed would die along, and look as guilty after a few times: so a claim under way
    counts as running, and a second suspect is not kept beside the first. The others wait meanwhile, so
    suspects have a `Ration` of the worker's time: what they take from their claim to their end.
    An orphan runs beside others, but no second orphan is kept beside it.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, debt: timedelta = ZERO
    ) -> None:
        now = clock()
        self.suspects = Turns(clock, Ration(now, debt=debt.total_seconds()))
        self.orphans = Turns(clock, Ration.of_orphans(now))
        self._running = 0  # jobs, from their claim on, and claims under way
        self._changed = asyncio.Event()

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """A claim is under way: a suspect waits for what it brings."""
        self._running += 1
        try:
            yield
        finally:
            self.leave()

    def place(self, job: LeasedJob) -> "Place | timedelta":
        """A place for the job, or how long it is to be given back for."""
        turns = self._turns_of(job)
        if turns is not None:
            wait = turns.take(job.tenant)
            if wait > ZERO:
                return wait
        if turns is not self.suspects:
            self._running += 1
        return Place(self, turns)

    async def is_over(self) -> None:
        """Wait until no suspect waits or runs alone."""
        while self.suspects.is_taken:
            await self._change()

    async def is_alone(self, patience: timedelta) -> bool:
        """Wait until nothing else runs; False after so long: what else waits has waited enough."""
        try:
            async with asyncio.timeout(patience.total_seconds()):
                while self._running:
                    await self._change()
        except TimeoutError:
            return False
        return True

    def join(self) -> None:
        """A suspect is one of many from here on."""
        self._running += 1
        self._changed.set()

    def leave(self) -> None:
        """A job or a claim is over."""
        self._running -= 1
        self._changed.set()

    def _turns_of(self, job: LeasedJob) -> Turns | None:
        if may_kill(job):
            return self.suspects
        return self.orphans if is_orphan(job) else None

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Place:
    """A place in the quiet, from the claim of a job to its end."""

    __slots__ = ("_quiet", "_turns")

    def __init__(self, quiet: Quiet, turns: Turns | None = None) -> None:
        self._quiet = quiet
        self._turns = turns

    @property
    def is_alone(self) -> bool:
        """Whether all others wait for it."""
        return self._turns is self._quiet.suspects

    @property
    def has_turn(self) -> bool:
        """Whether others wait for it, all or those that may kill, too."""
        return self._turns is not None

    def share(self) -> None:
        """Let others run beside it from here on."""
        if self._turns is not None:
            is_alone = self.is_alone
            self._turns.end()
            self._turns = None
            if is_alone:
                self._quiet.join()

    def leave(self) -> None:
        """Make room for others."""
        self.share()
        self._quiet.leave()
