"""Circuit breaker of a provider: opens after consecutive failures, then tries one call.

Pure: seconds of a monotonic clock and ``chance`` in [0, 1) come from the caller.
"""

from datetime import timedelta
from typing import Final, TypeAlias

Round: TypeAlias = int  # results of an earlier round are ignored

TRIPS_AFTER = 5  # consecutive failures
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
_JITTER = 0.25  # so that processes do not try again all at once
# After its last opening; then it is half open: an idle process makes no call that would close it.
LONGEST_OPEN: Final = timedelta(seconds=LONGEST_PAUSE_S * (1 + _JITTER))


class Breaker:
    """The circuit breaker of one provider in one process.

    Closed at first: every call may be made. `TRIPS_AFTER` consecutive failures open it: no call is made
    for a pause. Then it is half open: one call at a time, whose success closes it and whose failure opens
    it again, for twice the pause up to `LONGEST_PAUSE_S`. A trial call that never ends is replaced by
    another after the same pause.
    """

    def __init__(self) -> None:
        self._round: Round = 0
        self._failures = 0
        self._pause = 0.0  # the last pause; 0: closed
        self._blocked_until = 0.0

    @property
    def is_open(self) -> bool:
        """True if it is open or half open."""
        return self._pause > 0

    @property
    def is_suspect(self) -> bool:
        """True if its last result was a failure."""
        return self._failures > 0

    def wait(self, now: float) -> float:
        """Seconds until a call may be made; 0.0: now."""
        return max(0.0, self._blocked_until - now) if self.is_open else 0.0

    def begin(self, now: float) -> Round:
        """Record the start of an allowed call; pass the returned round to `succeeded` or `failed`."""
        if self.is_open:
            self._blocked_until = now + self._pause
        return self._round

    def unused(self, now: float) -> None:
        """Record that a started call was not made: another may be tried at once."""
        if self.is_open:
            self._blocked_until = min(self._blocked_until, now)

    def succeeded(self, began: Round) -> bool:
        """Record an answer, even one that refuses the message; return True if that closed it."""
        if began != self._round:
            return False
        closes = self.is_open
        self._failures, self._pause = 0, 0.0
        self._round += closes
        return closes

    def failed(self, began: Round, now: float, chance: float) -> bool:
        """Record a failure of the provider; return True if that opened it, for the first time or again."""
        if began != self._round:
            return False
        self._failures += 1
        if self._failures < TRIPS_AFTER and not self.is_open:
            return False
        self.open(now, chance)
        return True

    def open(self, now: float, chance: float) -> None:
        """Open for a pause, twice the last one if it was open."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S) or FIRST_PAUSE_S
        self._blocked_until = now + self._pause * (1 + _JITTER * (2 * chance - 1))
        self._round += 1
