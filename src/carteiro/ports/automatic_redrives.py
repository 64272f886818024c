"""Dead letters that wait for their provider, and the redrives that start by themselves."""

from typing import Protocol

from carteiro import model


class AutomaticRedrives(Protocol):
    """Redrives that nobody asked for. `Redrives` runs them; each is of one tenant and one provider.

    Promises, one module each in ``tests/contract/automatic_redrives``:

    waiting   An e-mail that died of a passing failure of its provider waits for that provider; nothing else does.
              It waits for its cool-down, which is longer after each round, at most as often as the plan says.
    careful   An automatic redrive keeps the end of a message's life. It never sends what has expired, may have been
              delivered, was cancelled, or is switched off for its tenant or its template type.
    fair      Tenants take turns, each has at most one; the number of running ones is limited.
    resumed   Postponing and dismissing can be killed anywhere and repeated: each dead letter counts a round once.
    """

    async def providers(self) -> list[str]:
        """The providers that dead letters wait for. Constant cost for each."""

    async def ripe(
        self, provider: str, plan: model.AutomaticPlan, *, after: str = "", limit: int
    ) -> list[model.TenantId]:
        """The next tenants by name with dead letters whose cool-down is over, unless they are held or have one open.

        Others that die at about the same time are gathered first. Only as many as may run besides those that do.
        """

    async def start(
        self, tenant: model.TenantId, provider: str, plan: model.AutomaticPlan, ramp: model.Ramp
    ) -> model.Redrive | None:
        """Start one of the dead letters whose cool-down is over; None: nothing can be redriven, or too many run."""

    async def due(
        self, redrive: model.Redrive, plan: model.AutomaticPlan, *, limit: int
    ) -> tuple[list[model.MessageId], bool]:
        """Dead letters that it has still to send, longest waiting first; True: there may be more.

        Those that are never redriven automatically, such as expired ones, do not wait any more.
        """

    async def postpone(
        self, redrive: model.Redrive, plan: model.AutomaticPlan, *, limit: int
    ) -> bool:
        """Count a round for dead letters that it did not send, so that they cool down; True if there may be more."""

    async def dismiss(
        self, redrive: model.Redrive, plan: model.AutomaticPlan, *, limit: int
    ) -> bool:
        """Let dead letters that it did not send wait no more: somebody cancelled it; True if there may be more."""
