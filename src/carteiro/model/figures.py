"""Figures: counters of what happened, and key figures with their goals."""

from collections import Counter
from datetime import datetime
from typing import Literal, TypeAlias

from carteiro.model.basics import TenantId, value

Figures: TypeAlias = Counter[str]  # see policy/rollups.py
Span: TypeAlias = Literal["minute", "hour"]
Split: TypeAlias = Literal["tenant", "template", "provider"]


@value
class TemplateResult:
    """Finished messages of a template of a tenant."""

    tenant: TenantId
    template: str
    sent: int
    failed: int


@value
class ServedShare:
    """Messages that ended in the minute or hour that begins ``at``: of one tenant, and of all ``tenants`` that had any.

    ``weights``: of those together. ``jain``: Jain's index of fairness, 1 if all of them were served by their weights.
    """

    at: datetime
    served: int
    of_all: int
    weights: float
    tenants: int
    jain: float

    @property
    def share(self) -> float:
        """The share of the tenant."""
        return self.served / self.of_all

    def fair_share(self, weight: float) -> float:
        """The share that a tenant of this weight would have among them."""
        return weight / (self.weights if self.served else self.weights + weight)


@value
class Kpi:
    """A key figure: a share (0 to 1) or seconds; None if nothing happened that it could be computed from.

    ``count``: the number of messages, or of pauses, that it is about. ``goal``: the figure should be ``above`` or
    ``below`` it. ``is_met``: None without a goal or a figure.
    """

    name: str
    unit: Literal["share", "seconds"]
    figure: float | None
    count: int
    goal_is: Literal["above", "below"] | None = None
    goal: float | None = None
    is_met: bool | None = None


@value
class AttemptSuccess:
    """Ended attempts with this number, and those that sent their message; the last one counts all later ones."""

    attempt: int
    count: int
    sent: int
    share: float
