"""Leases that cannot have expired yet: about these the queue need not be asked.

A claim is sure for half of its lease, by the clock of this process. A step of the server's clock, or a release of one
of its jobs, ends that. If the queue was wiped meanwhile, the ledger decides as if the queue could not be asked.
"""

import time
from collections.abc import Callable, Iterable

from carteiro.model import ClaimId

_MOST = 10_000  # claims
_JITTER_MS = 1000
_BOOT_TIME = getattr(time, "CLOCK_BOOTTIME", None)  # None: not on this system


class SureLeases:
    """The sure claims of one process; ``clock`` None: its own, which never steps."""

    def __init__(self, clock: Callable[[], int] | None) -> None:
        self._clock = clock
        self._until: dict[ClaimId, int] = {}
        self._latest = 0
        self._offset: int | None = None  # of the server's clock

    def now(self) -> int:
        """The time of this process; if it was set back, nothing is sure."""
        now = _awake_or_not() if self._clock is None else self._clock()
        if now < self._latest:
            self._until.clear()
        self._latest = now
        return now

    def seen(self, server: int, *, at: int) -> None:
        """The server's time in its answer to what was asked at this time; after a step of it nothing is sure."""
        offset = server - at
        if self._offset is None or abs(offset - self._offset) > _JITTER_MS:
            self._until.clear()
            self._offset = offset

    def leased(self, claim: ClaimId, at: int, lease_ms: int) -> None:
        """A claim that was asked for at this time."""
        if len(self._until) >= _MOST:
            live = {each: until for each, until in self._until.items() if until > at}
            self._until = live if len(live) < _MOST else {}
        self._until[claim] = at + lease_ms // 2

    def has(self, claim: ClaimId) -> bool:
        """True if the leases of the claim cannot have expired yet."""
        return self.now() < self._until.get(claim, 0)

    def forget(self, claims: Iterable[ClaimId]) -> None:
        """Jobs of these claims were given back."""
        for claim in claims:
            self._until.pop(claim, None)


def _awake_or_not() -> int:
    """Milliseconds since some moment, also those that the machine was suspended: leases run out meanwhile."""
    passed_ns = time.monotonic_ns() if _BOOT_TIME is None else time.clock_gettime_ns(_BOOT_TIME)
    return passed_ns // 1_000_000
