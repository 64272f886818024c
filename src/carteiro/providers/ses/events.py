"""Events of SES, as feedback. Pure."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from carteiro.model import BounceKind, EventType, Feedback
from carteiro.policy import feedback
from carteiro.policy.classify import one_line

_ON_ACCOUNT_LIST = "onaccountsuppressionlist"
_TYPES: Mapping[str, tuple[EventType, str]] = {
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


def from_ses(event: object) -> Feedback | None:
    """The feedback in an event or a notification of SES; None: it is not about a mail of ours."""
    told = feedback.mapping(event)
    name = feedback.text(told.get("eventType")) or feedback.text(told.get("notificationType"))
    mail = feedback.mapping(told.get("mail"))
    mine = feedback.ours(mail)
    if name.lower() not in _TYPES or mine is None:
        return None
    type, part = _TYPES[name.lower()]
    more = feedback.mapping(told.get(part))
    at = feedback.moment(more.get("timestamp")) or feedback.moment(mail.get("timestamp"))
    if at is None:
        return None
    bounce = _bounce(type, part, more)
    recipients = _recipients(more)
    provider_id = one_line(feedback.text(mail.get("messageId")))
    kind = "" if bounce is None else bounce.value
    link = feedback.text(more.get("link"))
    known_by = (name, kind, provider_id, at.isoformat(), *sorted(recipients), link)
    return Feedback(
        message=mine.message,
        type=type if bounce is None else EventType.BOUNCED,
        at=at,
        provider="ses",
        provider_id=provider_id,
        event_id=sha256("\n".join(known_by).encode("utf-8", "replace")).hexdigest()[:32],
        revision=mine.revision,
        tenant_tag=mine.tenant_tag,
        recipients=recipients,
        bounce=bounce,
        detail=_detail(more),
    )


def _bounce(type: EventType, part: str, more: Mapping[str, Any]) -> BounceKind | None:
    if type is EventType.COMPLAINED:  # one that was never sent: the account's own list had it
        is_listed = feedback.text(more.get("complaintSubType")).lower() == _ON_ACCOUNT_LIST
        return BounceKind.SOFT if is_listed else None
    if type is not EventType.BOUNCED:
        return None
    if part != "bounce":
        return BounceKind.REJECTED
    return feedback.bounce_kind(more.get("bounceType"), more.get("bounceSubType"))


def _recipients(more: Mapping[str, Any]) -> tuple[str, ...]:
    named = [
        feedback.mapping(each).get("emailAddress")
        for name in ("bouncedRecipients", "complainedRecipients", "delayedRecipients")
        for each in feedback.sequence(more.get(name))
    ]
    return feedback.addresses([*named, *feedback.sequence(more.get("recipients"))])


def _detail(more: Mapping[str, Any]) -> str | None:
    first = feedback.mapping(next(iter(feedback.sequence(more.get("bouncedRecipients"))), None))
    kinds = (more.get("bounceType"), more.get("bounceSubType"))
    words = (
        "/".join(filter(None, map(feedback.text, kinds))),
        feedback.text(first.get("diagnosticCode")),
        *(
            feedback.text(more.get(name))
            for name in ("complaintFeedbackType", "complaintSubType", "delayType")
        ),
        *(
            feedback.text(more.get(name))
            for name in ("reason", "errorMessage", "smtpResponse", "link")
        ),
    )
    return feedback.detail(words)
