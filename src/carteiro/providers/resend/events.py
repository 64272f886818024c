"""Events of Resend, as feedback. Pure."""

from collections.abc import Mapping
from typing import Any

from carteiro.model import BounceKind, EventType, Feedback
from carteiro.policy import feedback
from carteiro.policy.addresses import named_in
from carteiro.policy.classify import one_line

_TYPES: Mapping[str, tuple[EventType, str]] = {
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


def from_resend(event: object, *, event_id: str) -> Feedback | None:
    """The feedback of Resend's webhook; None: it is not about a mail of ours."""
    told = feedback.mapping(event)
    name, letter = feedback.text(told.get("type")), feedback.mapping(told.get("data"))
    mine = feedback.ours(letter)
    at = feedback.moment(told.get("created_at"))
    if name not in _TYPES or mine is None or at is None:
        return None
    type, part = _TYPES[name]
    more = feedback.mapping(letter.get(part))
    kinds = (more.get("type"), more.get("subType"))
    return Feedback(
        message=mine.message,
        type=type,
        at=at,
        provider="resend",
        provider_id=one_line(feedback.text(letter.get("email_id"))),
        event_id=event_id,
        revision=mine.revision,
        tenant_tag=mine.tenant_tag,
        recipients=_recipients(type, letter, more),
        bounce=_bounce(type, part, more),
        detail=feedback.detail(
            (
                "/".join(filter(None, map(feedback.text, kinds))),
                *(feedback.text(more.get(name)) for name in ("message", "reason", "link")),
            )
        ),
    )


def _recipients(
    type: EventType, letter: Mapping[str, Any], more: Mapping[str, Any]
) -> tuple[str, ...]:
    """The recipients that it is about. Resend lists all of the mail: if there are several, only those in its text."""
    copies = [*feedback.sequence(letter.get("cc")), *feedback.sequence(letter.get("bcc"))]
    listed = feedback.addresses([*feedback.sequence(letter.get("to")), *copies])
    has_copies = (
        len(listed) > 1 or feedback.tags_of(letter.get("tags")).get(feedback.COPIES_TAG) is not None
    )
    if not has_copies or type not in _OF_ONE:
        return listed
    return tuple(named_in(" ".join(_texts(more)), listed))


def _texts(more: Mapping[str, Any]) -> list[str]:
    """All texts of a part, also those in lists."""
    return [
        feedback.text(each)
        for told in more.values()
        for each in (told if isinstance(told, list) else [told])
    ]


def _bounce(type: EventType, part: str, more: Mapping[str, Any]) -> BounceKind | None:
    if type is not EventType.BOUNCED:
        return None
    if part == "failed":
        return BounceKind.REJECTED
    if part == "suppressed":
        return BounceKind.SOFT
    return feedback.bounce_kind(more.get("type"), more.get("subType"))
