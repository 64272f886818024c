"""A histogram as plain numbers: cheap to add to, made cumulative when it is read."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """How often a value fell into each bucket, and the sum of all values."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)  # the last is for what is above all bounds
        self.total = 0.0

    def observe(self, measured: float, times: int = 1) -> None:
        """Add a value, so often."""
        self._counts[bisect_left(self._bounds, measured)] += times
        self.total += measured * times

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound as Prometheus writes it, with how many values are not above it."""
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))
