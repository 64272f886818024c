"""Whether a provider is called: after failures of its own in a row it is left alone, then tried with one call.

Pure: seconds of a monotonic clock and ``chance`` in [0, 1) come from the caller.
"""

from typing import TypeAlias

Round: TypeAlias = int  # calls of an earlier one come too late to say anything

TRIPS_AFTER = 5  # failures in a row
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
_JITTER = 0.25  # processes that lost a provider together do not come back together


class Breaker:
    """What one process knows of the health of one provider.

    Closed at first: every call may be made. `TRIPS_AFTER` failures without a success between them open
    it: no call is made for a while. Then it is half open: one call at a time, whose success closes it and
    whose failure opens it again, for twice as long each time up to `LONGEST_PAUSE_S`. A trial that never
    ends gives way to another after as long a while.
    """

    def __init__(self) -> None:
        self._round: Round = 0
        self._failures = 0
        self._pause = 0.0  # the last one; 0: closed
        self._blocked_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it takes more than being called to be trusted again."""
        return self._pause > 0

    @property
    def is_suspect(self) -> bool:
        """Whether the last that was heard of it was a failure."""
        return self._failures > 0

    def wait(self, now: float) -> float:
        """In how many seconds a call may be made; 0.0: now."""
        return max(0.0, self._blocked_until - now) if self.is_open else 0.0

    def begin(self, now: float) -> Round:
        """A call is made, which may be made now; say afterwards how it ended, and in which round it began."""
        if self.is_open:
            self._blocked_until = now + self._pause
        return self._round

    def unused(self, now: float) -> None:
        """A call that was begun is not made: another may be tried at once."""
        if self.is_open:
            self._blocked_until = min(self._blocked_until, now)

    def succeeded(self, began: Round) -> bool:
        """The provider answered, be it to refuse the message; return whether that closed it."""
        if began != self._round:
            return False
        closes = self.is_open
        self._failures, self._pause = 0, 0.0
        self._round += closes
        return closes

    def failed(self, began: Round, now: float, chance: float) -> bool:
        """It is the provider that failed; return whether that opened it, for the first time or again."""
        if began != self._round:
            return False
        self._failures += 1
        if self._failures < TRIPS_AFTER and not self.is_open:
            return False
        self.open(now, chance)
        return True

    def open(self, now: float, chance: float) -> None:
        """Make no call for a while, twice as long as the last time if it was open."""
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S) or FIRST_PAUSE_S
        self._blocked_until = now + self._pause * (1 + _JITTER * (2 * chance - 1))
        self._round += 1
