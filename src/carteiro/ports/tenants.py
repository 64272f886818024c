"""Who sends, and how they share the machine."""

from collections.abc import Sequence
from typing import Protocol

from carteiro import model


class Tenants(Protocol):
    """Tenants and their share. Changes act on the waiting backlog at once.

    Promises, one module each in ``tests/contract/tenants``:

    shares    A change of weight, tier, cap, rate or pause acts on the waiting backlog at once.
    standing  The fairness figures of a tenant are what its claims made them.
    tiered    A tenant can only be of a tier that has a weight; else nothing is changed.
    claimed   A domain of ``from_domains`` belongs to one tenant: a second claim is refused and changes nothing,
              even if both are made at the same moment.
    listed    Pages follow each other without a gap or a twin.
    closed    A disabled tenant accepts nothing, and what waits is held until it is enabled again.
    charged   A refused message counts against the same limits as an accepted one; nothing else of it is kept.
    erased    Nothing of an erased tenant is left, and no other tenant is touched.
    """

    async def define(self, tenants: Sequence[model.Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time.

        Raises `DomainClaimed` if a domain is another tenant's, `TierUnknown` if a tier has no weight.
        """
        ...

    async def ensure(self, ids: Sequence[model.TenantId]) -> None:
        """Create the tenants that are missing; known ones stay as they are."""
        ...

    async def find(self, ids: Sequence[model.TenantId]) -> list[model.Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        ...

    async def claimants(self, domains: Sequence[str]) -> list[model.TenantId | None]:
        """The tenant that has claimed each domain (in its normal form), None for one that nobody has."""
        ...

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        ...

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        ...

    async def fairness(self) -> tuple[model.Fairness, bool]:
        """The fairness settings in force here, and whether `tune` gave them."""
        ...

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share.

        No span of its length holds more claims than its count, and with work waiting every span holds as many.
        """
        ...

    async def charge(
        self, tenant: model.TenantId, refused: int, *, limits: model.ApiLimits
    ) -> model.Charged:
        """Count messages that were refused, as far as they fit; of an unknown tenant nothing is counted."""
        ...

    async def standings(self, kind: model.KindName) -> list[model.Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        ...

    async def list(
        self, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.Tenant]:
        """The tenants, by id."""
        ...

    async def erase(self, tenant: model.TenantId, *, limit: int = 1000) -> model.Erased | None:
        """Take a tenant and everything of it away, in pages of messages; None if there is none.

        It is disabled by the first page, so that nothing comes in meanwhile. What is in flight is
        left until it has ended (``has_more``).
        """
        ...
