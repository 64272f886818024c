"""Tenants, and their shares of the capacity."""

from collections.abc import Callable, Sequence
from typing import Protocol

from carteiro import model


class Tenants(Protocol):
    """Tenants and their shares.

    Promises, one module each in ``tests/contract/tenants``:

    shares    A change of weight, tier, cap, rate or pause applies to waiting jobs at once.
    changed   A change of some fields keeps the others, also if they are changed at the same moment.
    standing  The fairness figures of a tenant match its claims.
    tiered    The tier of a tenant must have a weight; else nothing is changed.
    claimed   A domain of ``from_domains`` belongs to one tenant: a second claim is refused and changes nothing,
              also if both are made at the same moment.
    listed    Pages have no gaps and no duplicates.
    closed    A disabled tenant accepts nothing, and its waiting jobs are held until it is enabled again.
    charged   A refused message counts against the same limits as an accepted one; nothing else of it is stored.
    erased    Nothing of an erased tenant is left, and no other tenant is changed.
    """

    async def define(self, tenants: Sequence[model.Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time.

        Raises `DomainClaimed` if a domain is another tenant's, `TierUnknown` if a tier has no weight.
        """

    async def change(
        self, tenant: model.TenantId, changed: Callable[[model.Tenant], model.Tenant]
    ) -> model.Tenant | None:
        """Replace a tenant by what ``changed`` makes of it, with no other change in between; None if there is none.

        ``changed`` is pure: it may be called again. What it raises is raised, and changes nothing; see also `define`.
        """

    async def ensure(self, ids: Sequence[model.TenantId]) -> None:
        """Create the missing tenants; known ones do not change."""

    async def find(self, ids: Sequence[model.TenantId]) -> list[model.Tenant | None]:
        """The tenants with these ids, None for an unknown one."""

    async def claimants(self, domains: Sequence[str]) -> list[model.TenantId | None]:
        """The tenant that claimed each domain (in normal form), None for an unclaimed one."""

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; it applies at once to its tenants without their own weight."""

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Change the fairness settings of all workers now; None restores the configured ones."""

    async def fairness(self) -> tuple[model.Fairness, bool]:
        """The fairness settings in force here; True if they come from `tune`."""

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or remove the limit that all claims of a kind share.

        No period of its length has more claims than its count; while jobs wait, every period has as many.
        """

    async def charge(
        self, tenant: model.TenantId, refused: int, *, limits: model.ApiLimits
    ) -> model.Charged:
        """Count refused messages, up to the limits; nothing is counted for an unknown tenant."""

    async def standings(
        self, kind: model.KindName, *, tenants: Sequence[model.TenantId] | None = None
    ) -> list[model.Standing]:
        """The standing of each tenant with jobs or history of this kind, least served first.

        With ``tenants`` only of these.
        """

    async def list(
        self, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.Tenant]:
        """The tenants, by id."""

    async def erase(self, tenant: model.TenantId, *, limit: int = 1000) -> model.Erased | None:
        """Delete a tenant and all its data, in pages of messages; None if there is none.

        The first page disables it, so that nothing new is accepted. Jobs in flight are deleted after they
        have ended (``has_more``).
        """
