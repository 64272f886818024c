"""The tenants' turns: the arithmetic of virtual time, the same in every store.

Virtual time is served jobs divided by weight, in whole numbers, so that all stores order ties equally.
The tenant with the least goes first, ties to the least recently served. V is the start of the
last served turn; a tenant keeps its virtual time when it leaves the ring and returns at
max(own, V): no credit for absence.
"""

from carteiro.model import Fairness

SCALE = 1_000_000  # the virtual time of one job at weight 1
LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
SUSPECT_CLAIMS = 2  # after this many claims without an end a job is claimed alone
# Cost of such a claim for its tenant: it ends the claim before it, and most are put off.
SUSPECT_TURNS = 5
READIED_PER_TURN = 30


def stride(weight: float) -> int:
    """The virtual time of one job at this weight."""
    return round(SCALE / min(max(weight, LEAST_WEIGHT), MOST_WEIGHT))


def jain(count: int, total: float, squares: float) -> float:
    """Jain's index of numbers, from their sum and the sum of their squares: 1 if all are equal, else less."""
    return total * total / (count * squares) if squares else 1.0


def rescaled(vt: int, v: int, *, old: int, new: int) -> int:
    """Virtual time after a change of stride: its lead over V is converted to the new stride."""
    return v + (vt - v) * new // old if vt > v else vt


def rounds_without(turn: int, last_turn: int, seated: int) -> int:
    """Whole rounds since the last turn: turns of others divided by the tenants in the ring."""
    return max(0, turn - last_turn) // max(1, seated)


def priority(rounds: int, fairness: Fairness) -> int:
    """Virtual time as the classic priority: smaller (more urgent) the longer without a turn."""
    urgency = fairness.round_robin_base_priority - rounds * fairness.priority_increment_per_round
    return max(fairness.max_round_robin_priority, urgency)
