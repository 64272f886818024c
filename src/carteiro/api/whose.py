"""The tenant of a request: the caller itself, or the tenant in the address."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from carteiro.api.refusal import found
from carteiro.model import Tenant, TenantId, value
from carteiro.policy.names import is_name
from carteiro.ports import Tenants


@value
class Whose:
    """The owner of what endpoints show: their address, and how the tenant of a request is found."""

    prefix: str
    find: Callable[[Request], Awaitable[Tenant]]

    async def tenant_of(self, request: Request) -> TenantId:
        """The tenant; a `Refusal` if there is none, or the caller has no access."""
        return (await self.find(request)).id


async def found_tenant(tenants: Tenants, request: Request) -> Tenant:
    """The tenant in the address; a `Refusal` if there is none."""
    name = request.path_params["tenant"]
    [tenant] = await tenants.find([TenantId(name)]) if is_name(name) else [None]
    return found(tenant, "tenant")
