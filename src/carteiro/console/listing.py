"""Lists: their filters, which are in the address, and their pages."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from carteiro.api.reading import Time
from carteiro.api.refusal import bad_value, found
from carteiro.console.visit import Visit
from carteiro.model import Cursor, TenantId, value
from carteiro.policy.names import is_name
from carteiro.ports import Tenants

Choice = TypeVar("Choice", bound=StrEnum)

PAGE_ROWS = 50
_LONGEST = 255
_LONGEST_CURSOR = 1024
_TIME: TypeAdapter[datetime] = TypeAdapter(Time)


@value
class Chip:
    """A filter that is set: its name, its value, and the address without it."""

    name: str
    text: str
    without: str


def chips(visit: Visit, topic: str, names: Sequence[str]) -> list[Chip]:
    """The filters of a list that are set; each has a word ``TOPIC.filter_NAME``."""
    return [
        Chip(visit.words(f"{topic}.filter_{each}"), visit.query[each], visit.same(**{each: None}))
        for each in names
        if each in visit.query
    ]


def text_in(visit: Visit, name: str) -> str | None:
    """The text of a filter; None: it is not set. A `Refusal` if it is too long."""
    given = visit.query.get(name)
    if given is not None and len(given) > _LONGEST:
        raise bad_value(name, f"should have at most {_LONGEST} characters")
    return given


def choice_in(visit: Visit, name: str, known: type[Choice]) -> Choice | None:
    """The value of a filter that has few; None: it is not set. A `Refusal` if it has another."""
    given = text_in(visit, name)
    try:
        return None if given is None else known(given)
    except ValueError:
        raise bad_value(name, f"should be one of {', '.join(known)}") from None


def options(visit: Visit, key: str, known: type[StrEnum]) -> list[tuple[str, str]]:
    """The values of such a filter, each with its word ``KEY_VALUE``; the first one is any."""
    words = visit.words
    return [("", words("shell.any")), *((each, words(f"{key}_{each}")) for each in known)]


def time_in(visit: Visit, name: str) -> datetime | None:
    """The time of a filter: with an offset, or as a form sends it, in the zone of the viewer."""
    given = visit.query.get(name)
    if given is None:
        return None
    try:
        local = datetime.fromisoformat(given)
        return _TIME.validate_python(
            (local if local.tzinfo else local.replace(tzinfo=visit.zone)).isoformat()
        )
    except (ValueError, OverflowError, ValidationError):
        raise bad_value(name, "should be a time, such as 2026-11-01T12:00") from None


async def tenant_asked_for(tenants: Tenants, visit: Visit, given: str | None) -> TenantId | None:
    """The tenant whose things a page shows: the one asked for, else the viewer's own; None: there is none yet."""
    name = visit.within(given)
    if name is None:
        return None
    [tenant] = await tenants.find([TenantId(name)]) if is_name(name) else [None]
    return found(tenant, "tenant").id


def cursor_in(visit: Visit) -> Cursor | None:
    """The end of the page before."""
    given = visit.query.get("cursor")
    if given is not None and len(given) > _LONGEST_CURSOR:
        raise bad_value("cursor", "is not a cursor of this list")
    return None if given is None else Cursor(given)
