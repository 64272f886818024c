"""Start rates of jobs: a `Pace` for the rate of a tenant or provider, a `Window` for a send limit.

A pace is one record, the time at which the next token is due (GCRA), in whole microseconds of the store's
clock. A full bucket holds the tokens of ``burst``, at least one, so up to two seconds' worth can start
within a second. A window remembers its draws instead, so that no period has more than its count.
"""

from collections.abc import Sequence
from typing import NamedTuple

from carteiro.model import MILLISECOND, SendLimit, value

MOST_DRAWS = 100  # kept one by one; beyond this, draws close together count as the last of them

_SECOND_US = 1_000_000


@value
class Pace:
    """One token every ``interval_us``; as many as are due within ``burst_us`` can be drawn at once."""

    interval_us: int
    burst_us: int

    @classmethod
    def per_second(cls, rate: float) -> "Pace":
        """The send rate of a tenant: at most one second's worth at once."""
        interval_us = max(1, round(_SECOND_US / rate))
        return cls(interval_us, max(0, _SECOND_US - interval_us))

    def tokens(self, next_us: int, now_us: int) -> int:
        """The number of tokens available now."""
        spare = now_us + self.burst_us - self._due(next_us, now_us)
        return spare // self.interval_us + 1 if spare >= 0 else 0

    def drawn(self, next_us: int, now_us: int, count: int) -> int:
        """The record after a draw of ``count`` tokens."""
        return self._due(next_us, now_us) + count * self.interval_us

    def wakes_at_us(self, next_us: int) -> int:
        """The time of the next token."""
        return next_us - self.burst_us

    def _due(self, next_us: int, now_us: int) -> int:
        # Further ahead than a full draw can put it: the clock stepped back, and the record is void.
        is_nonsense = next_us > now_us + self.burst_us + self.interval_us
        return now_us if is_nonsense else max(next_us, now_us)


class Draw(NamedTuple):
    """Jobs that a claim started; ``at`` is their latest start, in milliseconds of the store's clock."""

    at: int
    jobs: int
    claim: str


@value
class Window:
    """At most ``count`` jobs in any period of ``per_ms``: the draws of the last period are subtracted.

    Draws are in the order of their times. A draw counts for a whole period, not a millisecond less.
    """

    count: int
    per_ms: int

    @classmethod
    def of(cls, limit: SendLimit) -> "Window":
        """The window of a send limit."""
        return cls(limit.count, limit.per // MILLISECOND)

    def left(self, draws: Sequence[Draw], now: int) -> int:
        """The number of jobs that may start now."""
        return max(0, self.count - sum(draw.jobs for draw in self._live(draws, now)))

    def drawn(self, draws: Sequence[Draw], now: int, jobs: int, claim: str) -> list[Draw]:
        """The draws that count after ``jobs`` more."""
        live = self._live(draws, now)
        at = max(now, live[-1].at) if live else now
        if live and self._is_one(live[-1].at, at):
            return [*live[:-1], Draw(at, live[-1].jobs + jobs, claim)]
        return [*live, Draw(at, jobs, claim)]

    def wakes_at(self, draws: Sequence[Draw], now: int) -> int:
        """The time at which the next job may start: enough draws are a period old."""
        over = 1 - self.count + sum(draw.jobs for draw in self._live(draws, now))
        for draw in self._live(draws, now):
            if over <= 0:
                break
            over, now = over - draw.jobs, draw.at + self.per_ms
        return now

    def _live(self, draws: Sequence[Draw], now: int) -> list[Draw]:
        return [draw for draw in draws if draw.at + self.per_ms > now]

    def _is_one(self, at: int, other: int) -> bool:
        width = max(1, self.per_ms // MOST_DRAWS)
        return self.count > MOST_DRAWS and at // width == other // width


def undrawn(draws: Sequence[Draw], claim: str, jobs: int) -> list[Draw]:
    """The draws after a claim returned ``jobs``; if the claim's draw was merged, it stays counted."""
    fewer = [draw._replace(jobs=draw.jobs - jobs * (draw.claim == claim)) for draw in draws]
    return [draw for draw in fewer if draw.jobs > 0]


def stepped_back(draws: Sequence[Draw], now: int) -> list[Draw]:
    """The draws after the clock stepped back: future ones become now, so that no wait is longer than a period."""
    return [draw._replace(at=min(draw.at, now)) for draw in draws]
