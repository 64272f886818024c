"""A histogram of plain numbers: cheap to add to, made cumulative when read."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """Counts by bucket, and the sum of all values."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)  # the last is for values above all bounds
        self.total = 0.0

    def observe(self, measured: float, times: int = 1) -> None:
        """Add a value this number of times."""
        self._counts[bisect_left(self._bounds, measured)] += times
        self.total += measured * times

    def observe_all(self, measured: list[float]) -> None:
        """Add many values: a search for each bound costs less than one for each value."""
        measured = sorted(measured)
        below = 0
        for bucket, bound in enumerate(self._bounds):
            upto = bisect_right(measured, bound, below)
            self._counts[bucket] += upto - below
            below = upto
            if below == len(measured):
                break
        self._counts[-1] += len(measured) - below
        self.total += sum(measured)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return each bound as Prometheus writes it, with the number of values up to it."""
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))
