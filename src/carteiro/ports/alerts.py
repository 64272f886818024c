"""Alerts: their states, silences, and notices on their way to people."""

import builtins
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol

from carteiro.model import Cursor, Page, TenantId
from carteiro.model.alerts import (
    Alert,
    AlertRefusal,
    AlertRules,
    DueNotice,
    Finding,
    Notice,
    Silence,
)


class Alerts(Protocol):
    """States of alerts. They move as `carteiro.policy.alert_states` says, one move after the other.

    Promises, one module each in ``tests/contract/alerts``:

    moved      An alert has one state, which outlives its process; two looks at once are one after the other. It
               keeps its state while its condition is unknown.
    announced  A notice is stored in the transaction of its change: one notice for each change, whatever crashes.
    delivered  A notice stays, under one id, until each channel has it or it is given up. Channels do not wait for each
               other.
    silenced   A silence delays notices until its end, also those of changes by people. It is shown for a month more.
    bounded    Resolved alerts are deleted after their retention (`Upkeep.prune`), ended silences after a month, the
               oldest of over 1000 earlier. At most 100 silences have not ended.
    coalesced  New dead letters are one notice per interval, with counts; none is left out or counted twice.
    isolated   Everything about an erased tenant is deleted, also in undelivered notices.
    """

    async def move(self, findings: Sequence[Finding], rules: AlertRules) -> builtins.list[Notice]:
        """Move the alerts by what holds now; return the stored notices."""

    async def acknowledge(self, name: str, subject: str, rules: AlertRules) -> Alert | AlertRefusal:
        """Acknowledge a firing alert, as the current actor; repeated, it changes nothing."""

    async def list(
        self,
        *,
        name: str | None = None,
        tenant: TenantId | None = None,
        resolved: bool = False,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Alert]:
        """The open alerts, or the resolved ones; those that changed last first."""

    async def silence(
        self, alert: str, subject: str, tenant: TenantId, *, lasts: timedelta, reason: str
    ) -> Silence | AlertRefusal:
        """Suppress notices about an alert for a time, as the current actor. The tenant has to exist; empty: none."""

    async def unsilence(self, silence: str) -> bool:
        """End a silence now; False: there is none with this id."""

    async def silences(self) -> builtins.list[Silence]:
        """The silences that have not ended, the next to end first."""

    async def silenced(
        self, alert: str | None = None, *, tenant: TenantId | None = None, limit: int = 100
    ) -> builtins.list[Silence]:
        """The silences of an alert, or of any, also those that ended; the newest first.

        Those of all alerts are among those of each.
        """

    async def note_dead_letters(self, *, every: timedelta, but: TenantId) -> Notice | None:
        """Store a notice about dead letters since the last one, unless that is younger than ``every``.

        Those of the tenant ``but`` do not count. The first call only begins to count.
        """

    async def test(self) -> Notice:
        """Store a notice for every channel that only shows that the channel works."""

    async def spread(self, channels: Collection[str]) -> bool:
        """Give each channel a copy of the new notices; False: no notice is on its way."""

    async def due(self, channel: str, *, limit: int) -> builtins.list[DueNotice]:
        """The notices that a channel is to be given now, oldest first."""

    async def waiting(self, *, limit: int = 100) -> builtins.list[DueNotice]:
        """The notices on their way, oldest first; the channel of those that no loop has seen yet is empty."""

    async def delivered(self, notice: str, channel: str) -> None:
        """Forget a notice of a channel: it has it, or never will."""

    async def put_off(self, notice: str, channel: str, *, wait: timedelta, error: str) -> None:
        """Give the notice to the channel again after a time."""


class Channel(Protocol):
    """A way to notify people."""

    async def send(self, notice: Notice) -> None:
        """Deliver a notice; the same one may come again. Raises `NotDelivered` if it must be tried again."""

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Take the notices of all alerts that fire now; called about twice a minute. Raises `NotDelivered`."""
