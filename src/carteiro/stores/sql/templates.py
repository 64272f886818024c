"""Templates."""

import builtins
from dataclasses import asdict

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
from carteiro.stores.sql.session import Database, Session
from carteiro.stores.tenant_columns import template_of, template_summary_of


class SqlTemplates:
    """See `carteiro.ports.templates.Templates` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def define(
        self, template: NewTemplate, *, limits: TemplateLimits = USUAL_TEMPLATE_LIMITS
    ) -> Template | StorageLimit | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""
        now = await self._db.now()
        return await self._db.write(lambda session: _define(session, template, limits, now))

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        row = await self._db.first("templates_find", tenant=tenant, type=type, version=version)
        return None if row is None else template_of(row)

    async def list(self, tenant: TenantId) -> builtins.list[TemplateSummary]:
        """The newest version of each type in use, by type, without what it says."""
        rows = await self._db.fetch("templates_list", tenant=tenant, most=MOST_TEMPLATES)
        return [template_summary_of(row) for row in rows]

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[TemplateSummary]:
        """The versions of a type that are kept, newest first, without what they say."""
        rows = await self._db.fetch(
            "templates_versions", tenant=tenant, type=type, most=MOST_TEMPLATE_VERSIONS
        )
        return [template_summary_of(row) for row in rows]

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        now = await self._db.now()
        return await self._db.run("templates_delete", tenant=tenant, type=type, now=now) > 0


async def _define(
    session: Session, template: NewTemplate, limits: TemplateLimits, now: int
) -> Template | StorageLimit | TenantUnknown:
    tenant = template.tenant
    if await session.value("tenant_lock", tenant=tenant) is None:
        return TenantUnknown(tenant)
    known = [
        TemplateKept(type_, bool(is_deleted), *sizes)
        for type_, is_deleted, *sizes in await session.fetch("templates_types", tenant=tenant)
    ]
    forgotten = forgotten_for(template, known, limits)
    if isinstance(forgotten, StorageLimit):
        return forgotten
    await session.run("templates_forget", tenant=tenant, types=forgotten.types)
    new = asdict(template) | {"bytes": template.size, "now": now}
    defined = template_of(await session.first("templates_define", **new))
    last = defined.version - limits.versions
    await session.run("templates_forget_versions", tenant=tenant, type=template.type, last=last)
    if forgotten.older:
        await session.run("templates_forget_older", tenant=tenant, types=forgotten.older)
    return defined
