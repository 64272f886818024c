"""Whom tenants must not write to, and what providers tell later, in memory."""

import builtins
from collections.abc import Iterable, Sequence

from carteiro.model import (
    Cursor,
    EventType,
    Feedback,
    NewSuppression,
    NoteAnswer,
    Page,
    StorageLimit,
    Suppression,
    TenantId,
    TenantUnknown,
)
from carteiro.policy import lifecycle
from carteiro.policy.suppression import Told, key_of, merge_all, suppressions
from carteiro.stores.cursors import FAR
from carteiro.stores.cursors import key_of as place_of
from carteiro.stores.memory.tables import Row, Tables, to_ms
from carteiro.stores.suppression_columns import count_new, page_of, place_in_list, told_of


class MemorySuppressions:
    """The `Suppressions` port on a plain dict."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def put(
        self, new: Sequence[NewSuppression], *, tenant: TenantId, most: int | None = None
    ) -> int | StorageLimit | TenantUnknown:
        """Suppress addresses, or count their soft bounces."""
        if tenant not in self._tables.tenants:
            return TenantUnknown(tenant)
        told = told_of(tenant, new, self._tables.now())
        return put(self._tables, tenant, told, most=most)

    async def remove(self, addresses: Sequence[str], *, tenant: TenantId) -> int:
        """Write to these again, whatever the reason was."""
        records = self._tables.suppressions.get(tenant, {})
        keys = {key_of(tenant, each) for each in addresses}
        gone = [place for place in records if place[0] in keys]
        for place in gone:
            del records[place]
        return len(gone)

    async def find(self, addresses: Sequence[str], *, tenant: TenantId) -> Sequence[str]:
        """Those of the addresses that must not be written to now."""
        return self._tables.suppressed(tenant, addresses, self._tables.now())

    async def list(
        self,
        tenant: TenantId,
        *,
        email: str | None = None,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Suppression]:
        """What is on record, newest first."""
        after = place_of(cursor, (FAR, ""))
        now = self._tables.now()
        wanted = None if email is None else key_of(tenant, email)
        records = [
            each
            for each in self._tables.suppressions.get(tenant, {}).values()
            if not each.is_over(now)
            and wanted in {None, each.key}
            and (each.created_at, place_in_list(each)) < after
        ]
        records.sort(key=lambda each: (each.created_at, place_in_list(each)), reverse=True)
        return page_of(records, limit)


class MemoryTracking:
    """The `Tracking` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def note(self, told: Sequence[Feedback]) -> builtins.list[NoteAnswer]:
        """Put feedback on the timelines of its messages, and draw the consequences."""
        now = self._tables.now()
        return [self._note_one(each, now) for each in told]

    def _note_one(self, told: Feedback, now: int) -> NoteAnswer:
        row = self._tables.rows.get(told.message)
        if row is None or row.message.to is None:  # unknown or erased
            return NoteAnswer.UNKNOWN
        answer, change = lifecycle.note(
            row.entry,
            told,
            known=_known(row),
            carriers=_carriers(row),
            at=to_ms(told.at),
            now=now,
        )
        if change is not None:
            self._tables.apply(row, change, now)
            tenant = row.entry.tenant
            put(self._tables, tenant, told_of(tenant, suppressions(told), now))
        return answer


def _known(row: Row) -> set[str]:
    return {
        str(event.metadata["eventId"])
        for event in row.events
        if event.type is not EventType.SENT and "eventId" in event.metadata
    }


def _carriers(row: Row) -> set[str]:
    attempts = [event for event in row.events if event.type is EventType.SENT_ATTEMPT]
    return {str(event.metadata["provider"]) for event in attempts}


def put(
    tables: Tables, tenant: TenantId, told: Iterable[Told], *, most: int | None = None
) -> int | StorageLimit:
    """Store what is told of addresses, unless that is more than ``most`` records."""
    records = tables.suppressions.setdefault(tenant, {})
    changed = merge_all(records, told)
    if most is not None and (new := count_new(changed, records)) and len(records) + new > most:
        return StorageLimit("suppressions", most)
    for each in changed:
        records[each.key, each.reason.value] = each
    return len(changed)
