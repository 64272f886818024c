"""Whom tenants must not write to, on Postgres."""

from collections.abc import Iterable, Sequence

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
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.suppression_columns import (
    count_new,
    known_of,
    page_of,
    record_of,
    record_row,
    told_of,
)


class PostgresSuppressions:
    """See `carteiro.ports.suppressions.Suppressions` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(
        self, new: Sequence[NewSuppression], *, tenant: TenantId, most: int | None = None
    ) -> int | StorageLimit | TenantUnknown:
        """Suppress addresses, or count their soft bounces."""
        told = told_of(tenant, new, await self._db.now())
        async with self._db.transaction() as session:
            stored = await put(session, tenant, told, most=most)
        return TenantUnknown(tenant) if stored is None else stored

    async def remove(self, addresses: Sequence[str], *, tenant: TenantId) -> int:
        """Write to these again, whatever the reason was."""
        keys = [key_of(tenant, each) for each in addresses]
        return int(await self._db.value("suppressions_remove", tenant, keys))

    async def find(self, addresses: Sequence[str], *, tenant: TenantId) -> Sequence[str]:
        """Those of the addresses that must not be written to now."""
        keys = [key_of(tenant, each) for each in addresses]
        tenants, now = [tenant] * len(keys), await self._db.now()
        rows = await self._db.fetch("suppressions_find", tenants, keys, now)
        suppressed = {row[1] for row in rows}
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
        asked = (tenant, await self._db.now(), *place_of(cursor, (FAR, "")), limit + 1)
        if email is None:
            rows = await self._db.fetch("suppressions_list", *asked)
        else:
            key = key_of(tenant, email)
            rows = await self._db.fetch("suppressions_list_of_key", *asked, key)
        return page_of([record_of(row) for row in rows], limit)


async def put(
    session: Session, tenant: TenantId, told: Iterable[Told], *, most: int | None = None
) -> int | StorageLimit | None:
    """Store what is told of addresses, in the caller's transaction; None if there is no such tenant.

    The tenant is held meanwhile: two that count the same bounces must not forget each other's.
    """
    listed = list(told)
    if await session.value("tenant_lock", tenant) is None:
        return None
    if not listed:
        return 0
    keys = sorted({each.key for each in listed})
    known = known_of(await session.fetch("suppressions_known", tenant, keys))
    changed = merge_all(known, listed)
    if most is not None and (new := count_new(changed, known)):
        kept = int(await session.value("suppressions_count", tenant, most))
        if kept + new > most:
            return StorageLimit("suppressions", most)
    columns = map(list, zip(*(record_row(each) for each in changed), strict=True))
    await session.fetch("suppressions_put", tenant, *columns)
    return len(changed)
