"""The tenant of a request: the caller itself, or the tenant in the address."""

from typing import Protocol

from starlette.requests import Request

from carteiro.api.key_ring import KeyRing
from carteiro.api.refusal import found
from carteiro.model import Tenant, TenantId
from carteiro.policy.names import is_name
from carteiro.ports import Tenants


class Whose(Protocol):
    """Finds the tenant of a request, or refuses it."""

    prefix: str

    async def tenant_of(self, request: Request) -> TenantId:
        """The tenant; a `Refusal` if there is none, or the caller has no access."""


class TheirOwn:
    """The tenant whose key the request has."""

    prefix = "/v1"

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    async def tenant_of(self, request: Request) -> TenantId:
        """The tenant of the key."""
        return (await self._keys.tenant_of(request)).id


class AnyTenants:
    """The tenant in the address, for administrators."""

    prefix = "/admin/v1/tenants/{tenant}"

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    async def tenant_of(self, request: Request) -> TenantId:
        """The tenant in the address."""
        return (await found_tenant(self._tenants, request)).id


async def found_tenant(tenants: Tenants, request: Request) -> Tenant:
    """The tenant in the address; a `Refusal` if there is none."""
    name = request.path_params["tenant"]
    [tenant] = await tenants.find([TenantId(name)]) if is_name(name) else [None]
    return found(tenant, "tenant")
