"""Templates."""

import builtins
from dataclasses import asdict

from carteiro import model
from carteiro.policy.templates import forgotten_for
from carteiro.stores.columns import made
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.session import Database, Session


class SqlTemplates:
    """See `carteiro.ports.templates.Templates` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def define(
        self,
        template: model.NewTemplate,
        *,
        limits: model.TemplateLimits = model.USUAL_TEMPLATE_LIMITS,
    ) -> model.Template | model.StorageLimit | model.TenantUnknown:
        """Store a new version, numbered from 1; a deleted type continues its numbers."""
        now = await self._db.now()
        return await self._db.write(lambda session: _define(session, template, limits, now))

    async def find(
        self, tenant: model.TenantId, type: str, *, version: int | None = None
    ) -> model.Template | None:
        """The newest version, None if the type is unknown or deleted; or the given version, deleted or not."""
        row = await self._db.first("templates_find", tenant=tenant, type=type, version=version)
        return None if row is None else made(model.Template, row)

    async def list(self, tenant: model.TenantId) -> builtins.list[model.TemplateSummary]:
        """The newest version of each type in use, by type, without html and text."""
        rows = await self._db.fetch("templates_list", tenant=tenant, most=model.MOST_TEMPLATES)
        return [made(model.TemplateSummary, row) for row in rows]

    async def versions(
        self, tenant: model.TenantId, type: str
    ) -> builtins.list[model.TemplateSummary]:
        """The stored versions of a type, newest first, without html and text."""
        rows = await self._db.fetch(
            "templates_versions", tenant=tenant, type=type, most=model.MOST_TEMPLATE_VERSIONS
        )
        return [made(model.TemplateSummary, row) for row in rows]

    async def delete(self, tenant: model.TenantId, type: str) -> bool:
        """Delete a type; messages accepted with it are still sent."""
        now = await self._db.now()

        async def delete(session: Session) -> bool:
            is_done = await session.run("templates_delete", tenant=tenant, type=type, now=now) > 0
            if is_done:
                await note(session, now, Noted("delete", "template", type, tenant))
            return is_done

        return await self._db.write(delete)


async def _define(
    session: Session, template: model.NewTemplate, limits: model.TemplateLimits, now: int
) -> model.Template | model.StorageLimit | model.TenantUnknown:
    tenant = template.tenant
    if await session.value("tenant_lock", tenant=tenant) is None:
        return model.TenantUnknown(tenant)
    known = [
        model.TemplateKept(type_, bool(is_deleted), *sizes)
        for type_, is_deleted, *sizes in await session.fetch("templates_types", tenant=tenant)
    ]
    forgotten = forgotten_for(template, known, limits)
    if isinstance(forgotten, model.StorageLimit):
        return forgotten
    await session.run("templates_forget", tenant=tenant, types=forgotten.types)
    new = asdict(template) | {"bytes": template.size, "now": now}
    defined = made(model.Template, await session.first("templates_define", **new))
    last = defined.version - limits.versions
    await session.run("templates_forget_versions", tenant=tenant, type=template.type, last=last)
    if forgotten.older:
        await session.run("templates_forget_older", tenant=tenant, types=forgotten.older)
    after = {
        "version": defined.version,
        "retry_preset": defined.retry_preset,
        "one_click_unsubscribe": defined.one_click_unsubscribe,
        "automatic_redrive": defined.automatic_redrive,
    }
    await note(session, now, Noted("put", "template", template.type, tenant, after=after))
    return defined
