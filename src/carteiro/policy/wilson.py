"""Bounds of a share that was counted in few cases: the score interval of Wilson (1927).

Unlike the usual estimate it holds for few cases, and for shares near 0 and 1: if none of 50 messages was sent, the true
share may still be 7 %.
"""

from math import sqrt
from typing import Final, NamedTuple

_Z: Final = 1.959963984540054  # 95 % of the normal distribution lie within this many deviations


class Bounds(NamedTuple):
    """The least and the largest share that a count agrees with, at 95 %."""

    low: float
    high: float


def bounds(successes: int, cases: int) -> Bounds:
    """The bounds of the true share of successes; of no cases it may be any."""
    if cases <= 0:
        return Bounds(0.0, 1.0)
    share, square = min(1.0, successes / cases), _Z * _Z  # cases may have been taken back since
    middle = share + square / (2 * cases)
    spread = _Z * sqrt(share * (1 - share) / cases + square / (4 * cases * cases))
    scale = 1 + square / cases
    return Bounds(max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale))
