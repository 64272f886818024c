"""Suppressed addresses of tenants."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from carteiro.model import (
    Cursor,
    NewSuppression,
    Page,
    StorageLimit,
    Suppression,
    SuppressionReason,
    TenantId,
    TenantUnknown,
)
from carteiro.policy.addresses import judge_address
from carteiro.policy.suppression import Record, Report, key_of, key_of_normal, merge_all
from carteiro.runtime.acting import actor
from carteiro.stores.columns import in_ms, maybe_moment, moment
from carteiro.stores.cursors import FAR, cursor_at
from carteiro.stores.cursors import key_of as place_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.session import Database, Session


class SqlSuppressions:
    """See `carteiro.ports.suppressions.Suppressions` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(
        self, new: Sequence[NewSuppression], *, tenant: TenantId, most: int | None = None
    ) -> int | StorageLimit | TenantUnknown:
        """Suppress addresses, or count their soft bounces; return the number of records written."""
        now = await self._db.now()
        reports = reports_of(tenant, new, now)
        by_hand = sum(each.reason is SuppressionReason.MANUAL for each in new)

        async def store(session: Session) -> int | StorageLimit | TenantUnknown:
            answer = await put(session, tenant, reports, most=most)
            if by_hand and isinstance(answer, int):
                await note(session, now, _noted("add", tenant, by_hand))
            return answer

        return await self._db.write(store)

    async def remove(self, addresses: Sequence[str], *, tenant: TenantId) -> int:
        """Allow these addresses again, for all reasons; return the number of deleted records."""
        keys = [key_of(tenant, each) for each in addresses]
        now = await self._db.now()

        async def remove(session: Session) -> int:
            count = await session.run("suppressions_remove", tenant=tenant, keys=keys)
            if count:
                await note(session, now, _noted("rm", tenant, count))
            return count

        return await self._db.write(remove)

    async def find(self, addresses: Sequence[str], *, tenant: TenantId) -> Sequence[str]:
        """The suppressed ones of these addresses, in the given spelling."""
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
        """The records, newest first, including soft bounces that are only counted."""
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
        return _page_of([_record_of(row) for row in rows], limit)


async def put(
    session: Session, tenant: TenantId, reports: Iterable[Report], *, most: int | None = None
) -> int | StorageLimit | TenantUnknown:
    """Store reports on addresses, in the caller's transaction.

    The tenant is locked, so that two transactions that count bounces do not overwrite each other.
    """
    listed = list(reports)
    if await session.value("tenant_lock", tenant=tenant) is None:
        return TenantUnknown(tenant)
    if not listed:
        return 0
    keys = sorted({each.key for each in listed})
    rows = await session.fetch("suppressions_known", tenant=tenant, keys=keys)
    known = {(row[0], row[1]): _record_of(row) for row in rows}
    changed = merge_all(known, listed)
    new = sum((each.key, each.reason.value) not in known for each in changed)
    if most is not None and new:
        kept: int = await session.value("suppressions_count", tenant=tenant, most=most)
        if kept + new > most:
            return StorageLimit("suppressions", most)
    await session.run("suppressions_put", tenant=tenant, rows=[_row_of(each) for each in changed])
    return len(changed)


def reports_of(tenant: TenantId, new: Iterable[NewSuppression], now: int) -> list[Report]:
    """Return reports on addresses, ready to be merged with records; none is dated in the future."""
    return [
        Report(
            key_of_normal(tenant, normal),
            each.reason,
            normal,
            now if each.at is None else min(in_ms(each.at), now),
            None if each.expires_at is None else in_ms(each.expires_at),
        )
        for each in new
        for normal in (
            each.address if each.is_normal else judge_address(each.address) or each.address,
        )
    ]


def _noted(action: str, tenant: TenantId, count: int) -> Noted:
    """A change by hand; of a tenant's own, which may be one for each unsubscription, only the first of a day."""
    if actor().is_own:
        return Noted(action, "suppression", "", tenant, is_daily=True)
    counted = {"count": count}
    before, after = (counted, None) if action == "rm" else (None, counted)
    return Noted(action, "suppression", "", tenant, before, after)


def _record_of(row: Sequence[Any]) -> Record:
    """Return a record from its columns, in its order."""
    key, reason, address, created_at, expires_at, is_active, bounces = row
    times = tuple(orjson.loads(bounces))
    return Record(
        key, SuppressionReason(reason), address, created_at, expires_at, bool(is_active), times
    )


def _row_of(record: Record) -> tuple[Any, ...]:
    """Return the columns of a record, in its order."""
    return (
        *(record.key, record.reason.value, record.address, record.created_at, record.expires_at),
        *(record.is_active, orjson.dumps(record.bounces).decode()),
    )


def _suppression_of(record: Record) -> Suppression:
    """Return a record in its public form."""
    return Suppression(
        address=record.address,
        reason=record.reason,
        created_at=moment(record.created_at),
        expires_at=maybe_moment(record.expires_at),
        is_active=record.is_active,
        bounces=len(record.bounces),
    )


def _page_of(records: Sequence[Record], limit: int) -> Page[Suppression]:
    """Return a page from a list that was read with one row more than the page may have."""
    page, more = records[:limit], None
    if len(records) > limit:
        more = cursor_at(page[-1].created_at, f"{page[-1].key}{page[-1].reason.value}")
    return Page([_suppression_of(each) for each in page], more)
