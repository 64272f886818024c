"""Notices as log lines."""

from collections.abc import Sequence

from carteiro.model.alerts import Notice
from carteiro.observability import notice_events
from carteiro.views import notices


class LogChannel:
    """See `carteiro.ports.alerts.Channel`."""

    async def send(self, notice: Notice) -> None:
        """Write a line."""
        notice_events.announced(notice, notices.title(notice))

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Nothing: a line stays."""
