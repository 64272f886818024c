"""Templates on SQLite."""

import builtins
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from carteiro.model import NewTemplate, Template, TenantId, TenantUnknown
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, moment, run
from carteiro.stores.sqlite.writer import Writer


class SqliteTemplates:
    """See `carteiro.ports.templates.Templates` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def define(self, template: NewTemplate) -> Template | TenantUnknown:
        """Store a new version, numbered from 1 on; a deleted type goes on counting."""

        def write(db: sqlite3.Connection) -> Template | TenantUnknown:
            if run(db, "tenants_find", ids=as_json([template.tenant])).fetchone() is None:
                return TenantUnknown(template.tenant)
            rows = run(
                db,
                "templates_define",
                tenant=template.tenant,
                type=template.type,
                subject=template.subject,
                html=template.html,
                text=template.text,
                retry_preset=template.retry_preset,
                now=self._clock(),
            ).fetchall()
            return _template(rows[0])

        return await self._writer.do(write)

    async def find(
        self, tenant: TenantId, type: str, *, version: int | None = None
    ) -> Template | None:
        """The newest version, None if the type is unknown or deleted; or the one that is named, deleted or not."""
        found = await self._select("templates_find", tenant=tenant, type=type, version=version)
        return found[0] if found else None

    async def list(self, tenant: TenantId) -> builtins.list[Template]:
        """The newest version of each type, by type."""
        return await self._select("templates_list", tenant=tenant)

    async def versions(self, tenant: TenantId, type: str) -> builtins.list[Template]:
        """Every version of a type, newest first."""
        return await self._select("templates_versions", tenant=tenant, type=type)

    async def delete(self, tenant: TenantId, type: str) -> bool:
        """Take a type out of use; what was accepted with it is sent all the same."""
        return await self._writer.do(
            lambda db: (
                run(db, "templates_delete", tenant=tenant, type=type, now=self._clock()).rowcount
                > 0
            )
        )

    async def _select(self, operation: str, **asked: object) -> builtins.list[Template]:
        rows = await self._reader.ask(lambda db: run(db, operation, **asked).fetchall())
        return [_template(row) for row in rows]


def _template(row: Sequence[Any]) -> Template:
    tenant, type_, version, subject, html, text, retry_preset, created_at = row
    return Template(
        tenant=tenant,
        type=type_,
        version=version,
        subject=subject,
        html=html,
        text=text,
        retry_preset=retry_preset,
        created_at=moment(created_at),
    )
