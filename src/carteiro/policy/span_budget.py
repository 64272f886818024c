"""A limit of spans: a tenant decides what it sends, and must not decide what tracing costs.

Without a clock: its caller says the time.
"""

from carteiro.model import value

_WINDOW_S = 60.0


@value
class SpanLimits:
    """Most spans that a process makes in a minute: of all, and of one tenant."""

    of_all: int
    of_one: int


class SpanBudget:
    """Counts the spans of a minute; one tenant cannot use up what there is for all."""

    def __init__(self, limits: SpanLimits) -> None:
        self._limits = limits
        self._ends = float("-inf")
        self._left = 0
        self._taken: dict[str, int] = {}  # no more tenants than spans

    def take(self, whose: str, spans: int, *, now: float) -> bool:
        """Take this many, at this second of any clock; False if fewer are left."""
        if now >= self._ends:
            self._ends, self._left, self._taken = now + _WINDOW_S, self._limits.of_all, {}
        taken = self._taken.get(whose, 0) + spans
        if spans > self._left or taken > self._limits.of_one:
            return False
        self._left -= spans
        self._taken[whose] = taken
        return True
