"""The named points where a process of the ticket lane dies: between every two steps of a ticket's life.

The parts of the lane are wrapped from outside, in the process that is to die; the product has no hook for it.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OPERATIONS = ("counted_up_to", "arrived", "look", "failed", "publish", "ended", "commit")
POINTS = (
    *(f"{operation}.{step}" for operation in OPERATIONS for step in ("asked", "answered")),
    "handler.asked",
    "handler.fails",
    "handler.returns",
)


@dataclass(frozen=True)
class Plan:
    """Die at a point, at the nth time it is reached."""

    point: str
    occurrence: int = 1

    def __str__(self) -> str:
        """The name of its test, and the argument of the process."""
        return f"{self.point}:{self.occurrence}"

    @classmethod
    def of(cls, text: str) -> "Plan | None":
        """As the process reads it."""
        point, _, occurrence = text.partition(":")
        return cls(point, int(occurrence)) if text else None


class Points:
    """Carries a plan out."""

    def __init__(self, plan: Plan | None) -> None:
        self._point = plan.point if plan else ""
        self._left = plan.occurrence if plan else 0

    def reach(self, point: str) -> None:
        """Die here, if that is the plan."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type, name: str) -> None:
        """Put points before and after a method of a class."""
        method: Callable[..., Any] = getattr(owner, name)

        async def operation(self_: object, *arguments: object, **named: object) -> Any:
            self.reach(f"{name}.asked")
            answer = await method(self_, *arguments, **named)
            self.reach(f"{name}.answered")
            return answer

        setattr(owner, name, operation)
