"""Read providers' events, and find the final delivery state of a mail. Pure.

An event that is not about our mail, or cannot be read, is ignored: an error would only make the provider
repeat it.
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
# The narrow set: other bounces may be temporary, or are not about the address.
_HARD = frozenset({"general", "noemail"})

_MESSAGE, _TENANT, _REVISION, COPIES_TAG = (
    each.replace("-", "_") for each in (tags.MESSAGE, tags.TENANT, tags.REVISION, tags.COPIES)
)

# Later ones say more about the delivery. A soft bounce is often an automatic reply.
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
    """The delivery state in a timeline, independent of the order of its reports. None: no report.

    Reports on an old revision do not count.
    """
    told = [_rank(event) for event in events if "revision" not in event.metadata]
    best = max((rank for rank in told if rank is not None), default=None)
    return None if best is None else _STANDINGS[best][0]


def _rank(event: TimelineEvent) -> int | None:
    bounce = event.metadata.get("bounce", BounceKind.HARD)
    is_bounce = event.type is EventType.BOUNCED
    return _RANKS.get((event.type, BounceKind(bounce) if is_bounce else None))


# --- reading events ------------------------------------------------------------------------------


def bounce_kind(type: object, sub_type: object) -> BounceKind:
    """Hard only if the address does not exist; types and subtypes are those of SES and its users."""
    is_hard = text(type).lower() == _PERMANENT and text(sub_type).lower() in _HARD
    return BounceKind.HARD if is_hard else BounceKind.SOFT


class Ours(NamedTuple):
    """The message of an event, according to our tags and ids."""

    message: MessageId
    revision: int | None
    tenant_tag: str | None = None


def ours(mail: Mapping[str, Any]) -> Ours | None:
    """Our ids: from tags in any notation, else from the Message-ID that we set."""
    told = tags_of(mail.get("tags"))
    if told.get(_MESSAGE):
        revision = told.get(_REVISION, "")
        is_number = len(revision) <= _LONGEST_NUMBER and revision.isascii() and revision.isdecimal()
        number = int(revision) if is_number else None
        return Ours(MessageId(told[_MESSAGE]), number, told.get(_TENANT) or None)
    found = _OUR_MESSAGE_ID.search(_message_id(mail))
    return None if found is None else Ours(MessageId(found[1]), int(found[2]))


def tags_of(given: object) -> Mapping[str, str]:
    """Tags by name, with underscores: SES lists values by name, Resend sends a mapping or a list."""
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
    """The text of an event, on one line."""
    return one_line(": ".join(filter(None, words))) or None


def moment(given: object) -> datetime | None:
    """A time as providers write it; None if it is not one."""
    try:
        at = datetime.fromisoformat(text(given))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def mapping(given: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return given if isinstance(given, Mapping) else {}


def sequence(given: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return given if isinstance(given, list) else []


def text(given: object) -> str:
    """The value if it is a text, else an empty one."""
    return given if isinstance(given, str) else ""
