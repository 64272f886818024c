"""What providers tell later: where a mail got to, and how their events are read. Pure.

What is not about a mail of ours, or cannot be read, becomes nothing: the provider has said it, and would only
say it again.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from carteiro.model import BounceKind, EventType, MessageId, TimelineEvent
from carteiro.policy import tags
from carteiro.policy.classify import one_line

_LONGEST_NUMBER = 9  # digits
_OUR_MESSAGE_ID = re.compile(
    r"<([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([1-9][0-9]{0,8})@[^<>\s]+>"
)
_PERMANENT = "permanent"
_HARD = frozenset(
    {"general", "noemail"}
)  # the narrow set: others may be cured, or are not the address's

_MESSAGE, _TENANT, _REVISION, COPIES_TAG = (
    each.replace("-", "_") for each in (tags.MESSAGE, tags.TENANT, tags.REVISION, tags.COPIES)
)

# What says more about where a mail got to, last. A soft bounce is often an answering machine's.
_STANDINGS = (
    (EventType.DELAYED, None),
    (EventType.BOUNCED, BounceKind.SOFT),
    (EventType.DELIVERED, None),
    (EventType.OPENED, None),
    (EventType.CLICKED, None),
    (EventType.BOUNCED, BounceKind.REJECTED),
    (EventType.BOUNCED, BounceKind.HARD),
    (EventType.COMPLAINED, None),
)
_RANKS = {each: rank for rank, each in enumerate(_STANDINGS)}


def standing(events: Iterable[TimelineEvent]) -> EventType | None:
    """Where a mail got to, as its timeline tells; the same in whatever order it was told. None: nobody told.

    What was told of a revision that is no more does not count.
    """
    told = [_rank(event) for event in events if "revision" not in event.metadata]
    best = max((rank for rank in told if rank is not None), default=None)
    return None if best is None else _STANDINGS[best][0]


def _rank(event: TimelineEvent) -> int | None:
    bounce = event.metadata.get("bounce", BounceKind.HARD)
    is_bounce = event.type is EventType.BOUNCED
    return _RANKS.get((event.type, BounceKind(bounce) if is_bounce else None))


# --- reading what a provider says ----------------------------------------------------------------


def bounce_kind(type: object, sub_type: object) -> BounceKind:
    """Hard only if the address does not exist; types and subtypes as SES and those behind it write them."""
    is_hard = text(type).lower() == _PERMANENT and text(sub_type).lower() in _HARD
    return BounceKind.HARD if is_hard else BounceKind.SOFT


class Ours(NamedTuple):
    """The message that an event is about, as our tags and ids tell."""

    message: MessageId
    revision: int | None
    tenant_tag: str | None = None


def ours(mail: Mapping[str, Any]) -> Ours | None:
    """Our ids: as tags, however the provider writes them, else out of the Message-ID that we gave."""
    told = tags_of(mail.get("tags"))
    if told.get(_MESSAGE):
        revision = told.get(_REVISION, "")
        is_number = len(revision) <= _LONGEST_NUMBER and revision.isascii() and revision.isdecimal()
        number = int(revision) if is_number else None
        return Ours(MessageId(told[_MESSAGE]), number, told.get(_TENANT) or None)
    found = _OUR_MESSAGE_ID.search(_message_id(mail))
    return None if found is None else Ours(MessageId(found[1]), int(found[2]))


def tags_of(given: object) -> Mapping[str, str]:
    """Tags by name, with underscores: SES lists values by name, Resend has them as a mapping or listed."""
    pairs = (
        list(given.items())
        if isinstance(given, Mapping)
        else [(mapping(each).get("name"), mapping(each).get("value")) for each in sequence(given)]
    )
    return {
        text(name).replace("-", "_"): text(value[0] if isinstance(value, list) and value else value)
        for name, value in pairs
    }


def _message_id(mail: Mapping[str, Any]) -> str:
    common = text(mapping(mail.get("commonHeaders")).get("messageId"))
    headers = [mapping(each) for each in sequence(mail.get("headers"))]
    named = [
        text(each.get("value"))
        for each in headers
        if text(each.get("name")).lower() == "message-id"
    ]
    return next(filter(None, [common, *named]), "")


def addresses(given: Iterable[object]) -> tuple[str, ...]:
    """Each address once, on one line."""
    return tuple(dict.fromkeys(one_line(each) for each in given if isinstance(each, str) and each))


def detail(words: Iterable[str]) -> str | None:
    """What an event says, on one line."""
    return one_line(": ".join(filter(None, words))) or None


def moment(given: object) -> datetime | None:
    """A moment as providers write it; None: it is none."""
    try:
        at = datetime.fromisoformat(text(given))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def mapping(given: object) -> Mapping[str, Any]:
    """It, if it is an object."""
    return given if isinstance(given, Mapping) else {}


def sequence(given: object) -> list[Any]:
    """It, if it is a list."""
    return given if isinstance(given, list) else []


def text(given: object) -> str:
    """It, if it is a text."""
    return given if isinstance(given, str) else ""
