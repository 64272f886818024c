"""Templates of the tenants."""

import builtins
from typing import Protocol

from carteiro import model


class Templates(Protocol):
    """Templates of a tenant by type; each change is a new version.

    Promises, one module each in ``tests/contract/templates``:

    versioned  A version never changes; the newest is found by default, or a named one, also after a delete.
    few        A tenant keeps no more types, versions and bytes than `TemplateLimits`; none in use is deleted.
    isolated   A template is visible only to its tenant.
    """

    async def define(
        self,
        template: model.NewTemplate,
        *,
        limits: model.TemplateLimits = model.USUAL_TEMPLATE_LIMITS,
    ) -> model.Template | model.StorageLimit | model.TenantUnknown:
        """Store a new version, numbered from 1; a deleted type continues its numbers.

        Versions beyond the limit are deleted. If space is missing, whole deleted types are removed first, longest
        deleted first; then older versions, see `policy.templates`.
        """

    async def find(
        self, tenant: model.TenantId, type: str, *, version: int | None = None
    ) -> model.Template | None:
        """The newest version, None if the type is unknown or deleted; or the given version, deleted or not."""

    async def list(self, tenant: model.TenantId) -> builtins.list[model.TemplateSummary]:
        """The newest version of each type in use, by type, without html and text."""

    async def versions(
        self, tenant: model.TenantId, type: str
    ) -> builtins.list[model.TemplateSummary]:
        """The stored versions of a type, newest first, without html and text."""

    async def delete(self, tenant: model.TenantId, type: str) -> bool:
        """Delete a type; messages accepted with it are still sent."""
