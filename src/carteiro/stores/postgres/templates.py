"""Templates on Postgres."""

import builtins

from carteiro.model import (
    MOST_TEMPLATE_VERSIONS,
    MOST_TEMPLATES,
    USUAL_TEMPLATE_LIMITS,
    NewTemplate,
    StorageLimit,
    Template,
    TemplateKept,
    TemplateLimits,
    TemplateSummary,
    TenantId,
    TenantUnknown,
)
from carteiro.policy.templates import forgotten_for
from carteiro.stores.postgres.database import Database
from carteiro.stores.tenant_columns import template_of, template_summary_of


class PostgresTemplates:
    """See `carteiro.ports.templates.Templates` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def define(
        self, template: NewTemplate, *, limits: TemplateLimits = USUAL_TEMPLATE_LIMITS
    ) -> Template | StorageLimit | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""
        now = await self._db.now()
        async with self._db.transaction() as session:
            if await session.value("tenant_lock", template.tenant) is None:
                return TenantUnknown(template.tenant)
            known = await session.fetch("templates_types", template.tenant)
            forgotten = forgotten_for(template, [TemplateKept(*row) for row in known], limits)
            if isinstance(forgotten, StorageLimit):
                return forgotten
            await session.fetch("templates_forget", template.tenant, forgotten.types)
            row = await session.first(
                "templates_define",
                template.tenant,
                template.type,
                template.subject,
                template.html,
                template.text,
                template.retry_preset,
                now,
            )
            defined = template_of(row)
            last = defined.version - limits.versions
            await session.fetch("templates_forget_versions", template.tenant, template.type, last)
            if forgotten.older:
                await session.fetch("templates_forget_older", template.tenant, forgotten.older)
            return defined

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        row = await self._db.first("templates_find", tenant, type, version)
        return None if row is None else template_of(row)

    async def list(self, tenant: TenantId) -> builtins.list[TemplateSummary]:
        """The newest version of each type in use, by type, without what it says."""
        rows = await self._db.fetch("templates_list", tenant, MOST_TEMPLATES)
        return [template_summary_of(row) for row in rows]

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[TemplateSummary]:
        """The versions of a type that are kept, newest first, without what they say."""
        rows = await self._db.fetch("templates_versions", tenant, type, MOST_TEMPLATE_VERSIONS)
        return [template_summary_of(row) for row in rows]

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        now = await self._db.now()
        return await self._db.value("templates_delete", tenant, type, now) is not None
