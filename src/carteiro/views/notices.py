"""Notices as people and programs read them."""

from collections.abc import Iterator
from typing import Any

from carteiro.model.alerts import Notice, NoticeKind
from carteiro.views.moments import in_iso

_TITLES = {
    NoticeKind.FIRING: "firing",
    NoticeKind.REMINDER: "still firing",
    NoticeKind.ACKNOWLEDGED: "acknowledged",
    NoticeKind.RESOLVED: "resolved",
}
_WITH_VALUE = {NoticeKind.FIRING, NoticeKind.REMINDER}


def title(notice: Notice) -> str:
    """One line."""
    if notice.kind is NoticeKind.DEAD_LETTERS:
        return f"New dead letters: {notice.value:g}"
    if notice.kind is NoticeKind.TEST:
        return "Test of the channels"
    named = f"{notice.alert} {notice.subject}".rstrip()
    return f"{named}: {_TITLES[notice.kind]}"


def text(notice: Notice) -> str:
    """Everything, for an administrator."""
    return "\n".join(_lines(notice))


def title_for_tenant(notice: Notice) -> str:
    """One line, for the contact of the tenant that it is about."""
    is_over = notice.kind is NoticeKind.RESOLVED
    return f"{notice.subject}: {'the alert has ended' if is_over else 'messages are not delivered'}"


def text_for_tenant(notice: Notice) -> str:
    """Everything for the contact of the tenant that it is about, without what only an administrator can do."""
    since = f"Since {in_iso(notice.since)}."
    said = [notice.for_tenant or notice.condition, *_figures(notice), since]
    if notice.kind is NoticeKind.RESOLVED:
        said = [f"The alert that began {in_iso(notice.since)} has ended; there is nothing to do."]
    return "\n".join([*said, f"The operators of this service know it as notice {notice.id}."])


def _lines(notice: Notice) -> Iterator[str]:
    yield f"{title(notice)} ({notice.severity})"
    yield notice.condition
    yield from _figures(notice)
    yield f"Since {in_iso(notice.since)}."
    if notice.by:
        yield f"By {notice.by}."
    for each in notice.counts:
        yield f"- {each.tenant} {each.code}: {each.count}"
    if notice.kind is not NoticeKind.RESOLVED:
        yield f"What to do: {notice.action}"
    if notice.kind in _TITLES:
        yield f"More: carteiro alerts show {notice.alert}"
    if notice.runbook:
        yield f"Runbook: {notice.runbook} in the source of Carteiro"
    yield f"Notice {notice.id}, {in_iso(notice.at)}"


def _figures(notice: Notice) -> Iterator[str]:
    if notice.kind in _WITH_VALUE:
        yield f"Value {notice.value:g}, threshold {notice.threshold:g}."


def to_json(notice: Notice) -> dict[str, Any]:
    """The document of a webhook."""
    return {
        "type": f"alert.{notice.kind}",
        "timestamp": in_iso(notice.at),
        "data": {
            "id": notice.id,
            "alert": notice.alert,
            "subject": notice.subject,
            "companyId": notice.tenant or None,
            "severity": notice.severity,
            "value": notice.current_value,
            "threshold": notice.threshold,
            "since": in_iso(notice.since),
            "by": notice.by or None,
            "condition": notice.condition,
            "action": notice.action,
            "runbook": notice.runbook or None,
            "title": title(notice),
            "counts": [
                {"companyId": each.tenant, "code": each.code, "count": each.count}
                for each in notice.counts
            ],
        },
    }
