"""What tenants send again and again, with other words in it."""

import builtins
from typing import Protocol

from carteiro import model


class Templates(Protocol):
    """Templates of a tenant by their type, each change a new version.

    Promises, one module each in ``tests/contract/templates``:

    versioned  What a version says never changes; the newest one is found unless another is named, also after a delete.
    few        A tenant keeps no more types, versions and bytes than `TemplateLimits` say; none in use is forgotten.
    isolated   A tenant's templates are its own.
    """

    async def define(
        self,
        template: model.NewTemplate,
        *,
        limits: model.TemplateLimits = model.USUAL_TEMPLATE_LIMITS,
    ) -> model.Template | model.StorageLimit | model.TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting.

        Versions that are too old by now are forgotten. Where there is no room, types are forgotten with
        all their versions, those deleted first first; then older versions are, see `policy.templates`.
        """
        ...

    async def find(
        self, tenant: model.TenantId, type: str, *, version: int | None = None
    ) -> model.Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        ...

    async def list(self, tenant: model.TenantId) -> builtins.list[model.TemplateSummary]:
        """The newest version of each type in use, by type, without what it says."""
        ...

    async def versions(
        self, tenant: model.TenantId, type: str
    ) -> builtins.list[model.TemplateSummary]:
        """The versions of a type that are kept, newest first, without what they say."""
        ...

    async def delete(self, tenant: model.TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        ...
