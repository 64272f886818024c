"""Tenants of the demonstration, and their messages."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carteiro.model import ApiLimits, Tenant, TenantId

NO_LIMITS = ApiLimits(per_minute=None, per_hour=None, per_day=None)


@dataclass(frozen=True)
class Sender:
    """A tenant and its habits; ``addresses`` are local parts of the sandbox with their weights."""

    tenant: Tenant
    per_second: float
    at_once: int
    addresses: Mapping[str, int]

    def pause_s(self) -> float:
        """The wait between two requests."""
        return self.at_once / self.per_second

    def emails(self, dice: random.Random) -> list[dict[str, Any]]:
        """The next message."""
        return [self._email(dice) for _ in range(self.at_once)]

    def _email(self, dice: random.Random) -> dict[str, Any]:
        [local] = dice.choices(list(self.addresses), list(self.addresses.values()))
        order = dice.randrange(1_000_000)
        return {
            "to": f"{local}@sandbox.test",
            "subject": f"Order {order:06}",
            "html": f"<p>Your order {order:06} is on its way.</p>",
            "tags": ["demo"],
            "priority": dice.choice([1, 5, 5, 5, 9]),
        }


def _tenant(name: str, limits: ApiLimits = NO_LIMITS, **changes: Any) -> Tenant:  # noqa: ANN401 - the fields of a tenant
    return Tenant(TenantId(name), limits=limits, retry_preset="development", **changes)


# With three attempts throttle-4 dies, and is sent once it is redriven.
SENDERS = (
    Sender(_tenant("demo-steady"), 6, 1, {"ok": 90, "throttle-1": 5, "greylist": 5}),
    Sender(_tenant("demo-bursts"), 12, 60, {"ok": 95, "random-30": 5}),
    Sender(
        _tenant("demo-unlucky"),
        3,
        1,
        {"ok": 40, "throttle-4": 20, "bounce-550": 15, "reject": 10, "full-552": 15},
    ),
    Sender(_tenant("demo-slow", cap=3), 2, 1, {"slow-1": 80, "ok": 19, "lost-reply": 1}),
    Sender(_tenant("demo-eager", ApiLimits(30, None, None)), 2, 1, {"ok": 100}),
)
