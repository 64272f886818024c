"""A run of a worker until nothing is due."""

import asyncio
from collections import Counter
from datetime import timedelta

from carteiro.engine.slots import Slots
from carteiro.errors import StoreUnavailable
from carteiro.model import Claimed, State

A_MOMENT = timedelta(milliseconds=20)  # between empty claims


class OneShot:
    """The limit of the run, its end, and the results of its jobs."""

    def __init__(self, limit: int | None) -> None:
        self.left = limit
        self.claiming = asyncio.Lock()
        self.states: Counter[State] = Counter()
        self.failure: StoreUnavailable | None = None
        self._dry: set[Slots] = set()

    def is_over(self, pool: Slots, claimed: Claimed, *, is_idle: bool, of: int) -> bool:
        """True if the limit is reached, or every pool found nothing since the last job ended."""
        if claimed.jobs:
            self._dry.clear()
        elif is_idle and (claimed.idle_for is None or claimed.idle_for > A_MOMENT):
            self._dry.add(pool)  # otherwise a slot freed a millisecond ago may not show yet
        if self.left is not None:
            self.left -= len(claimed.jobs)
        return self.left == 0 or len(self._dry) == of

    def put_off(self, jobs: int) -> None:
        """These jobs of a claim are not run: they do not count against the limit."""
        if self.left is not None:
            self.left += jobs

    def result(self) -> Counter[State]:
        """The number of jobs by state; raises the failure if there are none."""
        if self.failure is not None and not self.states:
            raise self.failure
        return self.states
