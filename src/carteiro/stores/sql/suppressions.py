"""Whom tenants must not write to."""

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
from carteiro.stores.sql.session import Database, Session
from carteiro.stores.suppression_columns import (
    count_new,
    known_of,
    page_of,
    record_of,
    record_row,
    told_of,
)


class SqlSuppressions:
    """See `carteiro.ports.suppressions.Suppressions` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(
        self, new: Sequence[NewSuppression], *, tenant: TenantId, most: int | None = None
    ) -> int | StorageLimit | TenantUnknown:
        """Suppress addresses, or count their soft bounces."""
        told = told_of(tenant, new, await self._db.now())
        return await self._db.write(lambda session: put(session, tenant, told, most=most))

    async def remove(self, addresses: Sequence[str], *, tenant: TenantId) -> int:
        """Write to these again, whatever the reason was."""
        keys = [key_of(tenant, each) for each in addresses]
        return await self._db.run("suppressions_remove", tenant=tenant, keys=keys)

    async def find(self, addresses: Sequence[str], *, tenant: TenantId) -> Sequence[str]:
        """Those of the addresses that must not be written to now."""
        keys = [(tenant, key_of(tenant, each)) for each in addresses]
        now = await self._db.now()
        suppressed = set(map(tuple, await self._db.fetch("suppressions_find", keys=keys, now=now)))
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
        now = await self._db.now()
        rows = await self._db.fetch(
            "suppressions_list" if email is None else "suppressions_list_of_key",
            tenant=tenant,
            key=None if email is None else key_of(tenant, email),
            now=now,
            at=at,
            place=place,
            limit=limit + 1,
        )
        return page_of([record_of(row) for row in rows], limit)


async def put(
    session: Session, tenant: TenantId, told: Iterable[Told], *, most: int | None = None
) -> int | StorageLimit | TenantUnknown:
    """Store what is told of addresses, in the caller's transaction.

    The tenant is held meanwhile: two that count the same bounces must not forget each other's.
    """
    listed = list(told)
    if await session.value("tenant_lock", tenant=tenant) is None:
        return TenantUnknown(tenant)
    if not listed:
        return 0
    keys = sorted({each.key for each in listed})
    known = known_of(await session.fetch("suppressions_known", tenant=tenant, keys=keys))
    changed = merge_all(known, listed)
    if most is not None and (new := count_new(changed, known)):
        kept: int = await session.value("suppressions_count", tenant=tenant, most=most)
        if kept + new > most:
            return StorageLimit("suppressions", most)
    rows = [record_row(each) for each in changed]
    await session.run("suppressions_put", tenant=tenant, rows=rows)
    return len(changed)
