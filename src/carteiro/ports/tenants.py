"""Who sends, and how they share the machine."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import Fairness, KindName, SendLimit, Standing, Tenant, TenantId


class Tenants(Protocol):
    """Tenants, their keys, their share. Changes act on the waiting backlog at once.

    Promises, one module each in ``tests/contract/tenants``:

    shares    A change of weight, tier, cap, rate or pause acts on the waiting backlog at once.
    standing  The fairness figures of a tenant are what its claims made them.
    keyed     A key names its tenant by its hash; the key itself is never stored.
    """

    async def define(self, tenants: Sequence[Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        ...

    async def ensure(self, ids: Sequence[TenantId]) -> None:
        """Create the tenants that are missing; known ones stay as they are."""
        ...

    async def find(self, ids: Sequence[TenantId]) -> list[Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        ...

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        ...

    async def tune(self, fairness: Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        ...

    async def limit(self, kind: KindName, limit: SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share."""
        ...

    async def standings(self, kind: KindName) -> list[Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        ...

    async def add_key(self, tenant: TenantId, key_hash: str) -> None:
        """Let the key with this hash speak for the tenant."""
        ...

    async def has_key(self, tenant: TenantId) -> bool:
        """Whether any key speaks for the tenant."""
        ...

    async def of_key(self, key_hash: str) -> TenantId | None:
        """The tenant that the key with this hash speaks for."""
        ...
