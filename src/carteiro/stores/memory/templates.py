"""Templates, in memory."""

import builtins
from dataclasses import replace

from carteiro.model import (
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
from carteiro.stores.memory.tables import Tables, to_datetime


class MemoryTemplates:
    """The `Templates` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def define(
        self, template: NewTemplate, *, limits: TemplateLimits = USUAL_TEMPLATE_LIMITS
    ) -> Template | StorageLimit | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""
        if template.tenant not in self._tables.tenants:
            return TenantUnknown(template.tenant)
        forgotten = forgotten_for(template, self._types(template.tenant), limits)
        if isinstance(forgotten, StorageLimit):
            return forgotten
        for type in forgotten.types:
            del self._tables.templates[template.tenant, type]
        versions = self._tables.templates.setdefault((template.tenant, template.type), [])
        defined = Template(
            tenant=template.tenant,
            type=template.type,
            version=versions[-1].version + 1 if versions else 1,
            subject=template.subject,
            html=template.html,
            text=template.text,
            retry_preset=template.retry_preset,
            created_at=to_datetime(self._tables.now()),
        )
        versions.append(defined)
        del versions[: -limits.versions]
        for type in forgotten.older:
            del self._tables.templates[template.tenant, type][:-1]
        return defined

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        versions = self._tables.templates.get((tenant, type), [])
        if version is not None:
            return next((each for each in versions if each.version == version), None)
        return versions[-1] if versions and versions[-1].deleted_at is None else None

    async def list(self, tenant: TenantId) -> builtins.list[TemplateSummary]:
        """The newest version of each type in use, by type, without what it says."""
        newest = sorted(self._newest(tenant), key=lambda each: each.type)
        in_use = [each for each in newest if each.deleted_at is None]
        return [_summary(each) for each in in_use[:MOST_TEMPLATES]]

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[TemplateSummary]:
        """The versions of a type that are kept, newest first, without what they say."""
        return [_summary(each) for each in reversed(self._tables.templates.get((tenant, type), []))]

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        versions = self._tables.templates.get((tenant, type), [])
        if not versions or versions[-1].deleted_at is not None:
            return False
        versions[-1] = replace(versions[-1], deleted_at=to_datetime(self._tables.now()))
        return True

    def _types(self, tenant: TenantId) -> builtins.list[TemplateKept]:
        """All types of a tenant, in the order of deletion."""
        newest = self._newest(tenant)
        gone = [(each.deleted_at, each.type, each) for each in newest if each.deleted_at]
        in_use = [each for each in newest if each.deleted_at is None]
        return [self._kept(each) for each in (*(each for _, _, each in sorted(gone)), *in_use)]

    def _kept(self, newest: Template) -> TemplateKept:
        sizes = [_size(each) for each in self._tables.templates[newest.tenant, newest.type]]
        return TemplateKept(newest.type, newest.deleted_at is not None, sum(sizes), sizes[-1])

    def _newest(self, tenant: TenantId) -> builtins.list[Template]:
        return [kept[-1] for (owner, _), kept in self._tables.templates.items() if owner == tenant]


def _size(template: Template) -> int:
    texts = (template.subject, template.html, template.text)
    return sum(len(each.encode()) for each in texts if each)


def _summary(template: Template) -> TemplateSummary:
    return TemplateSummary(
        tenant=template.tenant,
        type=template.type,
        version=template.version,
        subject=template.subject,
        has_html=template.html is not None,
        has_text=template.text is not None,
        retry_preset=template.retry_preset,
        created_at=template.created_at,
        deleted_at=template.deleted_at,
    )
