"""What a worker may take on: the slots of its pools, and quiet for a job that may kill it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from carteiro.kinds import Pool
from carteiro.model import ZERO, Lease

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


class Quiet:
    """Lets a job that may kill its worker run when nothing else of the process runs, or is claimed.

    What is merely claimed would die along, and look as guilty after a few times: so a claim under way
    counts as running, and a second suspect is not kept beside the first.
    """

    def __init__(self) -> None:
        self._running = 0  # jobs, from their claim on, and claims under way
        self._has_suspect = False  # that waits or runs
        self._changed = asyncio.Event()

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """A claim is under way: a suspect waits for what it brings."""
        self._running += 1
        try:
            yield
        finally:
            self.leave()

    def place(self, *, is_suspect: bool) -> "Place | None":
        """A place to run in; None for a suspect beside another one."""
        if is_suspect and self._has_suspect:
            return None
        self._has_suspect |= is_suspect
        self._running += not is_suspect
        return Place(self, is_suspect=is_suspect)

    async def is_over(self) -> None:
        """Wait until no suspect waits or runs."""
        while self._has_suspect:
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

    def leave(self) -> None:
        """A job or a claim is over."""
        self._running -= 1
        self._changed.set()

    def leave_alone(self) -> None:
        """The suspect is over, or given back."""
        self._has_suspect = False
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Place:
    """A place in the quiet, from the claim of a job to its end."""

    __slots__ = ("_quiet", "is_suspect")

    def __init__(self, quiet: Quiet, *, is_suspect: bool) -> None:
        self._quiet = quiet
        self.is_suspect = is_suspect

    def leave(self) -> None:
        """Make room for others."""
        if self.is_suspect:
            self._quiet.leave_alone()
        else:
            self._quiet.leave()
