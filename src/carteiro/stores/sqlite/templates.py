"""Templates on SQLite."""

import builtins
import sqlite3
from collections.abc import Callable
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
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.tenant_columns import template_of, template_summary_of


class SqliteTemplates:
    """See `carteiro.ports.templates.Templates` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def define(
        self, template: NewTemplate, *, limits: TemplateLimits = USUAL_TEMPLATE_LIMITS
    ) -> Template | StorageLimit | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""

        def write(db: sqlite3.Connection) -> Template | StorageLimit | TenantUnknown:
            if run(db, "tenants_find", ids=as_json([template.tenant])).fetchone() is None:
                return TenantUnknown(template.tenant)
            known = [
                TemplateKept(type, bool(is_deleted), *sizes)
                for type, is_deleted, *sizes in run(db, "templates_types", tenant=template.tenant)
            ]
            forgotten = forgotten_for(template, known, limits)
            if isinstance(forgotten, StorageLimit):
                return forgotten
            run(db, "templates_forget", tenant=template.tenant, types=as_json(forgotten.types))
            new = asdict(template) | {"bytes": template.size, "now": self._clock()}
            [row] = run(db, "templates_define", **new).fetchall()
            defined = template_of(row)
            too_old = {"type": template.type, "last": defined.version - limits.versions}
            run(db, "templates_forget_versions", tenant=template.tenant, **too_old)
            if forgotten.older:
                older = as_json(forgotten.older)
                run(db, "templates_forget_older", tenant=template.tenant, types=older)
            return defined

        return await self._writer.do(write)

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        asked = {"tenant": tenant, "type": type, "version": version}
        row = await self._reader.ask(lambda db: run(db, "templates_find", **asked).fetchone())
        return None if row is None else template_of(row)

    async def list(self, tenant: TenantId) -> builtins.list[TemplateSummary]:
        """The newest version of each type in use, by type, without what it says."""
        return await self._select("templates_list", tenant=tenant, most=MOST_TEMPLATES)

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[TemplateSummary]:
        """The versions of a type that are kept, newest first, without what they say."""
        asked = {"tenant": tenant, "type": type, "most": MOST_TEMPLATE_VERSIONS}
        return await self._select("templates_versions", **asked)

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        return await self._writer.do(
            lambda db: (
                run(db, "templates_delete", tenant=tenant, type=type, now=self._clock()).rowcount
                > 0
            )
        )

    async def _select(self, operation: str, **asked: object) -> builtins.list[TemplateSummary]:
        rows = await self._reader.ask(lambda db: run(db, operation, **asked).fetchall())
        return [template_summary_of(row) for row in rows]
