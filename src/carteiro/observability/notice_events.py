"""Log events of notices and their channels, one function per event."""

from datetime import timedelta
from typing import Any

from carteiro import model
from carteiro.model.alerts import Notice, NoticeKind, Severity
from carteiro.observability.log import event
from carteiro.observability.log_targets import Level


def announced(notice: Notice, said: str) -> None:
    """Report the content of a notice."""
    is_wrong = notice.kind in {NoticeKind.FIRING, NoticeKind.REMINDER, NoticeKind.DEAD_LETTERS}
    level = Level.ERROR if notice.severity is Severity.CRITICAL else Level.WARN
    figures = {"value": notice.current_value, "threshold": notice.threshold}
    fields = {"severity": notice.severity} | figures
    more = {"since": notice.since, "action": notice.action, "runbook": notice.runbook}
    name = f"alert.{notice.kind}"
    event(level if is_wrong else Level.INFO, said, name, _of_notice(notice) | fields | more)


def put_off(notice: Notice, channel: str, why: str, *, wait: timedelta) -> None:
    """Report a channel that could not deliver a notice, and the time of the next try."""
    fields = {"channel": channel, "errorReason": why, "nextRetryDelay": wait // model.MILLISECOND}
    event(
        Level.WARN,
        "Notice not delivered, trying again",
        "notice.put_off",
        _of_notice(notice) | fields,
    )


def not_delivered(notice: Notice, channel: str, why: str, said: str) -> None:
    """Report a notice that a channel will never deliver: this line is in its place."""
    fields = {"channel": channel, "errorReason": why, "notice": said}
    text = "Notice not delivered by its channel: read it here, and check the settings of [notices]"
    event(Level.ERROR, text, "notice.not_delivered", _of_notice(notice) | fields)


def channel_away(channel: str, why: str) -> None:
    """Report once that a channel does not learn which alerts fire."""
    fields = {"channel": channel, "errorReason": why}
    event(Level.WARN, "Channel unreachable, trying again", "channel.away", fields)


def _of_notice(notice: Notice) -> dict[str, Any]:
    return {
        "noticeId": notice.id,
        "alert": notice.alert,
        "subject": notice.subject,
        "companyId": notice.tenant or None,
    }
