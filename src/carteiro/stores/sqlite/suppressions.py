"""Whom tenants must not write to, on SQLite."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from carteiro.model import (
    Cursor,
    NewSuppression,
    Page,
    StorageLimit,
    Suppression,
    TenantId,
    TenantUnknown,
)
from carteiro.policy.suppression import Told, key_of, merge_all
from carteiro.stores.cursors import FAR
from carteiro.stores.cursors import key_of as place_of
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.suppression_columns import (
    count_new,
    known_of,
    page_of,
    record_of,
    record_row,
    told_of,
)


class SqliteSuppressions:
    """See `carteiro.ports.suppressions.Suppressions` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def put(
        self, new: Sequence[NewSuppression], *, tenant: TenantId, most: int | None = None
    ) -> int | StorageLimit | TenantUnknown:
        """Suppress addresses, or count their soft bounces."""

        def write(db: sqlite3.Connection) -> int | StorageLimit | TenantUnknown:
            if run(db, "tenants_find", ids=as_json([tenant])).fetchone() is None:
                return TenantUnknown(tenant)
            return put(db, tenant, told_of(tenant, new, self._clock()), most=most)

        return await self._writer.do(write)

    async def remove(self, addresses: Sequence[str], *, tenant: TenantId) -> int:
        """Write to these again, whatever the reason was."""
        keys = as_json([key_of(tenant, each) for each in addresses])
        return await self._writer.do(
            lambda db: run(db, "suppressions_remove", tenant=tenant, keys=keys).rowcount
        )

    async def find(self, addresses: Sequence[str], *, tenant: TenantId) -> Sequence[str]:
        """Those of the addresses that must not be written to now."""
        keys = [(tenant, key_of(tenant, each)) for each in addresses]
        now = self._clock()
        rows = await self._reader.ask(
            lambda db: run(db, "suppressions_find", keys=as_json(keys), now=now).fetchall()
        )
        suppressed = set(rows)
        return [each for each, key in zip(addresses, keys, strict=True) if key in suppressed]

    async def list(
        self,
        tenant: TenantId,
        *,
        email: str | None = None,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Suppression]:
        """What is on record, newest first."""
        at, place = place_of(cursor, (FAR, ""))
        asked: dict[str, object] = {
            "tenant": tenant,
            "now": self._clock(),
            "at": at,
            "place": place,
        }
        operation = "suppressions_list"
        if email is not None:
            operation, asked["key"] = "suppressions_list_of_key", key_of(tenant, email)
        rows = await self._reader.ask(
            lambda db: run(db, operation, **asked, limit=limit + 1).fetchall()
        )
        return page_of([record_of(row) for row in rows], limit)


def put(
    db: sqlite3.Connection, tenant: TenantId, told: Iterable[Told], *, most: int | None = None
) -> int | StorageLimit:
    """Store what is told of addresses, in the writer's transaction, unless that is more than ``most`` records."""
    listed = list(told)
    if not listed:
        return 0
    keys = as_json(sorted({each.key for each in listed}))
    known = known_of(run(db, "suppressions_known", tenant=tenant, keys=keys))
    changed = merge_all(known, listed)
    if most is not None and (new := count_new(changed, known)):
        [kept] = run(db, "suppressions_count", tenant=tenant).fetchone()
        if kept + new > most:
            return StorageLimit("suppressions", most)
    rows = as_json([record_row(each) for each in changed])
    run(db, "suppressions_put", tenant=tenant, rows=rows)
    return len(changed)
