"""What providers tell later, out of their words: SES' events and Resend's become the same `Feedback`. Pure.

What is not about a mail of ours, or cannot be read, becomes nothing: the provider has said it, and would only
say it again.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from carteiro.model import BounceKind, EventType, Feedback, MessageId, TimelineEvent
from carteiro.policy import tags
from carteiro.policy.addresses import named_in
from carteiro.policy.classify import one_line

SES, RESEND = "ses", "resend"

_LONGEST_NUMBER = 9  # digits
_OUR_MESSAGE_ID = re.compile(
    r"<([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([1-9][0-9]{0,8})@[^<>\s]+>"
)
_PERMANENT = "permanent"
_HARD = frozenset(
    {"general", "noemail"}
)  # the narrow set: others may be cured, or are not the address's
_ON_ACCOUNT_LIST = "onaccountsuppressionlist"

_SES_TYPES: Mapping[str, tuple[EventType, str]] = {
    "send": (EventType.SENT, "send"),
    "delivery": (EventType.DELIVERED, "delivery"),
    "bounce": (EventType.BOUNCED, "bounce"),
    "complaint": (EventType.COMPLAINED, "complaint"),
    "deliverydelay": (EventType.DELAYED, "deliveryDelay"),
    "open": (EventType.OPENED, "open"),
    "click": (EventType.CLICKED, "click"),
    "reject": (EventType.BOUNCED, "reject"),
    "rendering failure": (EventType.BOUNCED, "failure"),
}
_RESEND_TYPES: Mapping[str, tuple[EventType, str]] = {
    "email.sent": (EventType.SENT, ""),
    "email.delivered": (EventType.DELIVERED, ""),
    "email.delivery_delayed": (EventType.DELAYED, ""),
    "email.complained": (EventType.COMPLAINED, ""),
    "email.bounced": (EventType.BOUNCED, "bounce"),
    "email.opened": (EventType.OPENED, ""),
    "email.clicked": (EventType.CLICKED, "click"),
    "email.failed": (EventType.BOUNCED, "failed"),
    "email.suppressed": (EventType.BOUNCED, "suppressed"),
}
_OF_ONE = frozenset({EventType.BOUNCED, EventType.COMPLAINED})  # what is held against an address
_MESSAGE, _TENANT, _REVISION, _COPIES = (
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


# --- SES ----------------------------------------------------------------------------------------


def from_ses(event: object) -> Feedback | None:
    """What SES publishes of an event, or notifies of; None: it is not about a mail of ours."""
    told = _mapping(event)
    name = _text(told.get("eventType")) or _text(told.get("notificationType"))
    mail = _mapping(told.get("mail"))
    mine = _ours(mail)
    if name.lower() not in _SES_TYPES or mine is None:
        return None
    type, part = _SES_TYPES[name.lower()]
    more = _mapping(told.get(part))
    at = _moment(more.get("timestamp")) or _moment(mail.get("timestamp"))
    if at is None:
        return None
    bounce = _ses_bounce(type, part, more)
    recipients = _ses_recipients(more)
    provider_id = one_line(_text(mail.get("messageId")))
    kind = "" if bounce is None else bounce.value
    link = _text(more.get("link"))
    known_by = (name, kind, provider_id, at.isoformat(), *sorted(recipients), link)
    return Feedback(
        message=mine.message,
        type=type if bounce is None else EventType.BOUNCED,
        at=at,
        provider=SES,
        provider_id=provider_id,
        event_id=sha256("\n".join(known_by).encode("utf-8", "replace")).hexdigest()[:32],
        revision=mine.revision,
        tenant_tag=mine.tenant_tag,
        recipients=recipients,
        bounce=bounce,
        detail=_ses_detail(more),
    )


def _ses_bounce(type: EventType, part: str, more: Mapping[str, Any]) -> BounceKind | None:
    if type is EventType.COMPLAINED:  # one that was never sent: the account's own list had it
        is_listed = _text(more.get("complaintSubType")).lower() == _ON_ACCOUNT_LIST
        return BounceKind.SOFT if is_listed else None
    if type is not EventType.BOUNCED:
        return None
    if part != "bounce":
        return BounceKind.REJECTED
    return _bounce(more.get("bounceType"), more.get("bounceSubType"))


def _bounce(type: object, sub_type: object) -> BounceKind:
    is_hard = _text(type).lower() == _PERMANENT and _text(sub_type).lower() in _HARD
    return BounceKind.HARD if is_hard else BounceKind.SOFT


def _ses_recipients(more: Mapping[str, Any]) -> tuple[str, ...]:
    named = [
        _mapping(each).get("emailAddress")
        for name in ("bouncedRecipients", "complainedRecipients", "delayedRecipients")
        for each in _sequence(more.get(name))
    ]
    return _addresses([*named, *_sequence(more.get("recipients"))])


def _ses_detail(more: Mapping[str, Any]) -> str | None:
    first = _mapping(next(iter(_sequence(more.get("bouncedRecipients"))), None))
    kinds = (more.get("bounceType"), more.get("bounceSubType"))
    words = (
        "/".join(filter(None, map(_text, kinds))),
        _text(first.get("diagnosticCode")),
        *(
            _text(more.get(name))
            for name in ("complaintFeedbackType", "complaintSubType", "delayType")
        ),
        *(_text(more.get(name)) for name in ("reason", "errorMessage", "smtpResponse", "link")),
    )
    return _detail(words)


# --- Resend -------------------------------------------------------------------------------------


def from_resend(event: object, *, event_id: str) -> Feedback | None:
    """What Resend's webhook tells; None: it is not about a mail of ours."""
    told = _mapping(event)
    name, letter = _text(told.get("type")), _mapping(told.get("data"))
    mine = _ours(letter)
    at = _moment(told.get("created_at"))
    if name not in _RESEND_TYPES or mine is None or at is None:
        return None
    type, part = _RESEND_TYPES[name]
    more = _mapping(letter.get(part))
    return Feedback(
        message=mine.message,
        type=type,
        at=at,
        provider=RESEND,
        provider_id=one_line(_text(letter.get("email_id"))),
        event_id=event_id,
        revision=mine.revision,
        tenant_tag=mine.tenant_tag,
        recipients=_resend_recipients(type, letter, more),
        bounce=_resend_bounce(type, part, more),
        detail=_detail(
            (
                "/".join(filter(None, (_text(more.get("type")), _text(more.get("subType"))))),
                *(_text(more.get(name)) for name in ("message", "reason", "link")),
            )
        ),
    )


def _resend_recipients(
    type: EventType, letter: Mapping[str, Any], more: Mapping[str, Any]
) -> tuple[str, ...]:
    """Whom it is about. Resend lists whom the mail was for: where that is not one alone, only whom its words name."""
    copies = [*_sequence(letter.get("cc")), *_sequence(letter.get("bcc"))]
    listed = _addresses([*_sequence(letter.get("to")), *copies])
    has_copies = len(listed) > 1 or _tags(letter.get("tags")).get(_COPIES) is not None
    if not has_copies or type not in _OF_ONE:
        return listed
    return tuple(named_in(" ".join(_texts(more)), listed))


def _texts(more: Mapping[str, Any]) -> list[str]:
    """All words of a part, also of what is listed in it."""
    return [
        _text(each)
        for told in more.values()
        for each in (told if isinstance(told, list) else [told])
    ]


def _resend_bounce(type: EventType, part: str, more: Mapping[str, Any]) -> BounceKind | None:
    if type is not EventType.BOUNCED:
        return None
    if part == "failed":
        return BounceKind.REJECTED
    if part == "suppressed":
        return BounceKind.SOFT
    return _bounce(more.get("type"), more.get("subType"))


# --- what both have -----------------------------------------------------------------------------


class _Ours(NamedTuple):
    message: MessageId
    revision: int | None
    tenant_tag: str | None = None


def _ours(mail: Mapping[str, Any]) -> _Ours | None:
    """Our ids: as tags, however the provider writes them, else out of the Message-ID that we gave."""
    told = _tags(mail.get("tags"))
    if told.get(_MESSAGE):
        revision = told.get(_REVISION, "")
        is_number = len(revision) <= _LONGEST_NUMBER and revision.isascii() and revision.isdecimal()
        number = int(revision) if is_number else None
        return _Ours(MessageId(told[_MESSAGE]), number, told.get(_TENANT) or None)
    found = _OUR_MESSAGE_ID.search(_message_id(mail))
    return None if found is None else _Ours(MessageId(found[1]), int(found[2]))


def _tags(given: object) -> Mapping[str, str]:
    """Tags by name, with underscores: SES lists values by name, Resend has them as a mapping or listed."""
    pairs = (
        list(given.items())
        if isinstance(given, Mapping)
        else [
            (_mapping(each).get("name"), _mapping(each).get("value")) for each in _sequence(given)
        ]
    )
    return {
        _text(name).replace("-", "_"): _text(
            value[0] if isinstance(value, list) and value else value
        )
        for name, value in pairs
    }


def _message_id(mail: Mapping[str, Any]) -> str:
    common = _text(_mapping(mail.get("commonHeaders")).get("messageId"))
    headers = [_mapping(each) for each in _sequence(mail.get("headers"))]
    named = [
        _text(each.get("value"))
        for each in headers
        if _text(each.get("name")).lower() == "message-id"
    ]
    return next(filter(None, [common, *named]), "")


def _addresses(given: Iterable[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one_line(each) for each in given if isinstance(each, str) and each))


def _detail(words: Iterable[str]) -> str | None:
    return one_line(": ".join(filter(None, words))) or None


def _moment(given: object) -> datetime | None:
    """A moment as providers write it; None: it is none."""
    try:
        at = datetime.fromisoformat(_text(given))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _sequence(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


def _text(given: object) -> str:
    return given if isinstance(given, str) else ""
