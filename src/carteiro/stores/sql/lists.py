"""Pages of messages: walks the most selective index, newest first.

A walk ends with the page, or after a number of messages that did not match: then the page is short, and its cursor
continues the walk. So the cost of a page does not depend on the number of messages, nor on the filter.

A tenant's list walks rows of that tenant alone: neither a page, its cursor nor its cost depends on other tenants. A
cursor holds the time and the id of the last row. Row numbers, which count all tenants' messages, stay in the store.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, TypeAlias

import orjson

from carteiro import model
from carteiro.stores.columns import in_ms, message_of, moment
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sql.session import Session

_WIDER = 4  # each step of a walk is longer than the one before by this factor
_UNLUCKY = model.FINISHED - {model.State.SENT} | {model.State.RETRY_SCHEDULED}

_Place: TypeAlias = tuple[int, int]  # created_at and number: the order of every list


@model.value
class Reach:
    """Limits of one page: messages that the walk may skip, and jobs of a queue that it may read one by one."""

    walk: int = 3_000  # about 25 ms if each of them lies on a database page of its own
    queue: int = 3_000


# Fields to find a message by, the most selective first; each has an index of (field, tenant, time).
_NAMES = ("provider_id", "external_id", "to")
_TIMES = {"created_after", "created_before"}
_LAST_ID = chr(0x7F)  # sorts after every id


class _Way(NamedTuple):
    """A statement that walks, its start, and the least useful length of its first step."""

    operation: str
    key: Mapping[str, Any]
    least: int = 0


async def find_messages(  # noqa: PLR0913 - what is wanted, and how to look for it
    session: Session,
    wanted: model.MessageFilter,
    *,
    cursor: model.Cursor | None,
    limit: int,
    reach: Reach = Reach(),  # noqa: B008 - a value, never changed
    has_queue: bool = True,
) -> model.Page[model.StoredMessage]:
    """The matching messages, newest first, without their contents."""
    after = await _place_of(session, cursor, wanted.tenant)
    ways = await _ways(session, wanted, reach, has_queue=has_queue)
    step = max([limit + 1, *(way.least for way in ways)])
    found: list[Any] = []
    walked = 0
    while True:
        places = await _next_places(session, ways, wanted, after, step)
        if places:
            found += await _matching(session, wanted, places, limit + 1 - len(found))
        walked += step
        if len(found) > limit:
            last = found[limit - 1]
            return model.Page(_messages(found[:limit]), cursor_at(last[0], last[2]))
        if len(places) < step:
            return model.Page(_messages(found), None)
        if walked >= reach.walk:
            cursor = await _cursor_at_place(session, places[-1])
            return model.Page(_messages(found), cursor, moment(places[-1][0]))
        after, step = places[-1], min(step * _WIDER, reach.walk - walked)


async def _place_of(
    session: Session, cursor: model.Cursor | None, tenant: model.TenantId | None
) -> _Place:
    """The start of a page: after the cursor's message; if it was deleted, at the next id of its time."""
    if cursor is None:
        return FAR, 0
    at, message = key_of(cursor, (FAR, ""))
    return at, await session.value("cursor_place", at=at, id=message, tenant=tenant)


async def _cursor_at_place(session: Session, place: _Place) -> model.Cursor:
    """The cursor of a short page, after a message that did not match."""
    at, number = place
    return cursor_at(at, await session.value("cursor_id", no=number) or _LAST_ID)


async def _ways(
    session: Session, wanted: model.MessageFilter, reach: Reach, *, has_queue: bool
) -> list[_Way]:
    """The indexes to walk: the shortest that fits, several where several kinds are meant."""
    for name in _NAMES:
        if (text := getattr(wanted, name)) is not None:
            return [await _way_by(session, name, text, wanted.tenant)]
    if wanted.recipient_external_id is not None:
        recipients = await session.fetch(
            "recipients_named", external_id=wanted.recipient_external_id, tenant=wanted.tenant
        )
        return [_Way("walk_recipient", {"recipients": [row[0] for row in recipients]})]
    if wanted.tag is not None:
        return [await _way_by(session, "tag", wanted.tag, wanted.tenant)]
    if wanted.state is not None and wanted.state not in model.FINISHED:
        ways = await _ways_of_unfinished(session, wanted, reach, has_queue=has_queue)
        if ways:
            return ways
    return [_Way("walk_all", {})] if wanted.tenant is None else _ways_of_tenant(wanted)


async def _way_by(session: Session, name: str, text: str, tenant: model.TenantId | None) -> _Way:
    """The walk along one tenant's messages with this value, or along those of each tenant that has some."""
    tenants: list[model.TenantId] = [] if tenant is None else [tenant]
    if tenant is None:
        tenants = [row[0] for row in await session.fetch(f"{name}_tenants", **{name: text})]
    return _Way(f"walk_{name}", {"tenants": tenants, name: text})


async def _ways_of_unfinished(
    session: Session, wanted: model.MessageFilter, reach: Reach, *, has_queue: bool
) -> list[_Way]:
    """The walk through the queue while it is short. Without a queue here, a tenant's list walks its messages."""
    tenant, least = {"tenant": wanted.tenant}, reach.queue + 1
    if not has_queue:
        if wanted.tenant is not None:
            return []
        unfinished: int = await session.value("unfinished_messages", most=least)
        return [_Way("walk_unfinished_messages", {}, least)] if unfinished < least else []
    unfinished = await session.value("unfinished", **tenant)
    if unfinished < least:
        return [_Way("walk_unfinished", tenant, least)]
    return (
        [_Way("walk_attempts", tenant, least)] if wanted.state is model.State.SENT_ATTEMPT else []
    )


def _ways_of_tenant(wanted: model.MessageFilter) -> list[_Way]:
    tenant, state = {"tenant": wanted.tenant}, wanted.state
    if state is model.State.SENT and wanted.kind == model.EMAIL:
        return [_Way("walk_sent", tenant)]
    if state in _UNLUCKY:
        return [_Way("walk_unlucky", tenant)]
    emails, tasks = _Way("walk_emails", tenant), _Way("walk_tasks", tenant)
    return (
        [emails, tasks]
        if wanted.kind is None
        else [emails if wanted.kind == model.EMAIL else tasks]
    )


async def _next_places(
    session: Session, ways: list[_Way], wanted: model.MessageFilter, after: _Place, step: int
) -> list[_Place]:
    """The next places of all walks together."""
    since = -FAR if wanted.created_after is None else in_ms(wanted.created_after)
    if wanted.created_before is not None:
        after = min(after, (in_ms(wanted.created_before), 0))
    at, no = after
    places: list[_Place] = []
    for way in ways:
        rows = await session.fetch(way.operation, **way.key, since=since, at=at, no=no, limit=step)
        places += _places(rows)
    return sorted(places, reverse=True)[:step]


def _places(rows: list[Any]) -> list[_Place]:
    """A row is a place; on SQLite a JSON list of them, which is read in one step."""
    return [
        (at, number)
        for row in rows
        for at, number in (orjson.loads(row[0]) if isinstance(row[0], str) else [row])
    ]


async def _matching(
    session: Session, wanted: model.MessageFilter, places: list[_Place], limit: int
) -> list[Any]:
    """The wanted ones of these; their times are right already."""
    asked = {name: each for name, each in asdict(wanted).items() if name not in _TIMES}
    numbers = [number for _, number in places]
    return await session.fetch("messages", numbers=numbers, limit=limit, **asked)


def _messages(rows: list[Any]) -> list[model.StoredMessage]:
    return [message_of(row[2:]) for row in rows]
