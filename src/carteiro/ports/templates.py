"""What tenants send again and again, with other words in it."""

import builtins
from typing import Protocol

from carteiro.model import NewTemplate, Template, TenantId, TenantUnknown


class Templates(Protocol):
    """Templates of a tenant by their type, each change a new version.

    Promises, one module each in ``tests/contract/templates``:

    versioned  A version never changes; the newest one is found unless another is named, also after a delete.
    isolated   A tenant's templates are its own.
    """

    async def define(self, template: NewTemplate) -> Template | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""
        ...

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        ...

    async def list(self, tenant: TenantId) -> builtins.list[Template]:
        """The newest version of each type, by type."""
        ...

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[Template]:
        """Every version of a type, newest first."""
        ...

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        ...
