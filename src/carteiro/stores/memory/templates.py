"""Templates, in memory."""

import builtins

from carteiro.model import NewTemplate, Template, TenantId, TenantUnknown
from carteiro.stores.memory.tables import Tables, to_datetime


class MemoryTemplates:
    """The `Templates` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def define(self, template: NewTemplate) -> Template | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""
        if template.tenant not in self._tables.tenants:
            return TenantUnknown(template.tenant)
        name = (template.tenant, template.type)
        versions = self._tables.templates.setdefault(name, [])
        defined = Template(
            tenant=template.tenant,
            type=template.type,
            version=len(versions) + 1,
            subject=template.subject,
            html=template.html,
            text=template.text,
            retry_preset=template.retry_preset,
            created_at=to_datetime(self._tables.now()),
        )
        versions.append(defined)
        self._tables.deleted_templates.discard(name)
        return defined

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        versions = self._tables.templates.get((tenant, type), [])
        if version is not None:
            return versions[version - 1] if 0 < version <= len(versions) else None
        is_deleted = (tenant, type) in self._tables.deleted_templates
        return versions[-1] if versions and not is_deleted else None

    async def list(self, tenant: TenantId) -> builtins.list[Template]:
        """The newest version of each type, by type."""
        names = sorted(name for name in self._tables.templates if name[0] == tenant)
        in_use = [name for name in names if name not in self._tables.deleted_templates]
        return [self._tables.templates[name][-1] for name in in_use]

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[Template]:
        """Every version of a type, newest first."""
        return self._tables.templates.get((tenant, type), [])[::-1]

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        name = (tenant, type)
        if name not in self._tables.templates or name in self._tables.deleted_templates:
            return False
        self._tables.deleted_templates.add(name)
        return True
