"""Between columns and suppressions, the same in every store."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from carteiro.model import NewSuppression, Page, Suppression, SuppressionReason, TenantId
from carteiro.policy.addresses import judge_address
from carteiro.policy.suppression import Record, Told, key_of
from carteiro.stores.columns import in_ms, maybe_moment, moment
from carteiro.stores.cursors import cursor_at


def told_of(tenant: TenantId, new: Iterable[NewSuppression], now: int) -> list[Told]:
    """What is told of addresses, as records are merged with it; nothing happened later than now."""
    return [
        Told(
            key_of(tenant, each.address),
            each.reason,
            judge_address(each.address) or each.address,
            now if each.at is None else min(in_ms(each.at), now),
            None if each.expires_at is None else in_ms(each.expires_at),
        )
        for each in new
    ]


def record_of(row: Sequence[Any]) -> Record:
    """A record out of its columns, in its order."""
    key, reason, address, created_at, expires_at, is_active, bounces = row
    times = tuple(orjson.loads(bounces))
    return Record(
        key, SuppressionReason(reason), address, created_at, expires_at, bool(is_active), times
    )


def record_row(record: Record) -> tuple[Any, ...]:
    """The columns of a record, in its order."""
    return (
        *(record.key, record.reason.value, record.address, record.created_at, record.expires_at),
        *(record.is_active, orjson.dumps(record.bounces).decode()),
    )


def known_of(rows: Iterable[Sequence[Any]]) -> Mapping[tuple[str, str], Record]:
    """Records by key and reason."""
    return {(row[0], row[1]): record_of(row) for row in rows}


def count_new(changed: Iterable[Record], known: Mapping[tuple[str, str], Record]) -> int:
    """How many of the records are not stored yet."""
    return sum((each.key, each.reason.value) not in known for each in changed)


def suppression_of(record: Record) -> Suppression:
    """A record as people read it."""
    return Suppression(
        address=record.address,
        reason=record.reason,
        created_at=moment(record.created_at),
        expires_at=maybe_moment(record.expires_at),
        is_active=record.is_active,
        bounces=len(record.bounces),
    )


def place_in_list(record: Record) -> str:
    """What parts records of the same moment."""
    return f"{record.key}{record.reason.value}"


def page_of(records: Sequence[Record], limit: int) -> Page[Suppression]:
    """A page of a list that was asked for one more than it may have."""
    page = records[:limit]
    has_more = len(records) > limit
    more = cursor_at(page[-1].created_at, place_in_list(page[-1])) if has_more else None
    return Page([suppression_of(each) for each in page], more)
