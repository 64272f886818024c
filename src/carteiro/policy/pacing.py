"""How fast jobs may start: one record per limit, the time at which the next token is due (GCRA).

Whole microseconds of the store's clock. A full bucket holds ``burst``'s worth of tokens, at least one.
"""

from datetime import timedelta

from carteiro.model import SendLimit, value

_SECOND_US = 1_000_000


@value
class Pace:
    """Tokens every ``interval_us``; as many as were due within ``burst_us`` may be drawn at once."""

    interval_us: int
    burst_us: int

    @classmethod
    def per_second(cls, rate: float) -> "Pace":
        """A tenant's send rate: at most one second's worth at once."""
        return cls._within(round(_SECOND_US / rate), _SECOND_US)

    @classmethod
    def of(cls, limit: SendLimit) -> "Pace":
        """A shared send limit: at most its whole count at once."""
        per_us = limit.per // timedelta(microseconds=1)
        return cls._within(per_us // limit.count, per_us)

    @classmethod
    def _within(cls, interval_us: int, window_us: int) -> "Pace":
        interval_us = max(1, interval_us)
        return cls(interval_us, max(0, window_us - interval_us))

    def tokens(self, next_us: int, now_us: int) -> int:
        """How many may be drawn now."""
        spare = now_us + self.burst_us - self._due(next_us, now_us)
        return spare // self.interval_us + 1 if spare >= 0 else 0

    def drawn(self, next_us: int, now_us: int, count: int) -> int:
        """The record after ``count`` were drawn."""
        return self._due(next_us, now_us) + count * self.interval_us

    def wakes_at_us(self, next_us: int) -> int:
        """When the next token can be drawn."""
        return next_us - self.burst_us

    def _due(self, next_us: int, now_us: int) -> int:
        # Further ahead than a full draw can have put it: the clock stepped back, the record means nothing.
        is_nonsense = next_us > now_us + self.burst_us + self.interval_us
        return now_us if is_nonsense else max(next_us, now_us)
