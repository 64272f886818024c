"""Key figures of a range of time, with their goals."""

from dataclasses import replace
from itertools import accumulate
from typing import Final

from carteiro.model.figures import AttemptSuccess, Figures, Kpi
from carteiro.policy.rollups import DELAYS, MOST_ATTEMPTS

_ATTEMPTS: Final = range(1, MOST_ATTEMPTS + 1)


def kpis(figures: Figures) -> list[Kpi]:
    """The key figures; cancelled messages are in none of them."""
    sent, failed = count(figures, "sent"), count(figures, "failed")
    recovered = sum(count(figures, f"sent.{each}") for each in _ATTEMPTS[1:])
    lost = sum(count(figures, f"failed.{each}") for each in _ATTEMPTS)
    finished, tried_again, pauses = sent + failed, recovered + lost, count(figures, "pauses")
    return [
        _above(0.98, Kpi("final_delivery", "share", _share(sent, finished), finished)),
        _below(
            300.0, Kpi("mean_time_to_delivery", "seconds", _mean_s(figures, "delay", sent), sent)
        ),
        _above(0.9, Kpi("recovery", "share", _share(recovered, tried_again), tried_again)),
        _below(0.02, Kpi("finally_failed", "share", _share(failed, finished), finished)),
        Kpi("mean_time_between_attempts", "seconds", _mean_s(figures, "pause", pauses), pauses),
    ]


def by_attempt(figures: Figures) -> list[AttemptSuccess]:
    """Successes of each attempt that was made."""
    return [
        AttemptSuccess(each, ended, sent, sent / ended)
        for each in _ATTEMPTS
        if (ended := count(figures, f"ended.{each}"))
        for sent in (count(figures, f"sent.{each}"),)
    ]


def delay_within(figures: Figures, share: float) -> float | None:
    """Seconds from accept to sent that this share of the sent messages took at most; None if none was sent.

    Inside a slot of the histogram values are taken to be spread evenly, as by Prometheus.
    """
    slots = [count(figures, f"delay.{slot}") for slot in range(len(DELAYS) + 1)]
    rank = share * sum(slots)
    if not rank:
        return None
    upto = list(accumulate(slots))
    slot = next(slot for slot, number in enumerate(upto) if number >= rank)
    if slot == len(DELAYS):
        return DELAYS[-1] / 1000
    low, high = (0, *DELAYS)[slot], DELAYS[slot]
    return (low + (high - low) * (rank - (upto[slot] - slots[slot])) / slots[slot]) / 1000


def count(figures: Figures, name: str) -> int:
    """A figure, never below zero: a failure that is taken back may be older than the range."""
    return max(0, figures[name])


def _above(goal: float, kpi: Kpi) -> Kpi:
    is_met = None if kpi.figure is None else kpi.figure > goal
    return replace(kpi, goal_is="above", goal=goal, is_met=is_met)


def _below(goal: float, kpi: Kpi) -> Kpi:
    is_met = None if kpi.figure is None else kpi.figure < goal
    return replace(kpi, goal_is="below", goal=goal, is_met=is_met)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean_s(figures: Figures, name: str, number: int) -> float | None:
    return figures[f"{name}_ms"] / 1000 / number if number else None
