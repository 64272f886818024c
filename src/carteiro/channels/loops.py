"""The loops of alerts: for a worker, for a process without one, and once for a one-shot process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from carteiro.channels.open import open_channels
from carteiro.config import Settings
from carteiro.maintenance.alerts import evaluate_alerts, evaluate_once
from carteiro.maintenance.notices import NoticeSender, send_notices
from carteiro.maintenance.watch import findings
from carteiro.model.alerts import Finding
from carteiro.path.accept import Accepting
from carteiro.ports import Backend
from carteiro.ports.alerts import Channel


class AlertLoops:
    """Evaluates alerts by the settings, and sends notices to the channels that they name."""

    def __init__(self, ports: Backend, settings: Settings, accepting: Accepting) -> None:
        self._ports = ports
        self._settings = settings
        self._accepting = accepting
        self._rules = settings.alert_rules()

    def channels(self) -> Mapping[str, Channel]:
        """The channels by name; `ConfigError` if one lacks its secret or its library."""
        return open_channels(self._settings, self._ports, self._accepting)

    def loops(self) -> list[Any]:
        """The loops of a process; `ConfigError` as `channels`."""
        upkeep, alerts = self._ports.upkeep, self._ports.alerts
        sending = send_notices(upkeep, alerts, self.channels(), self._rules)
        return [evaluate_alerts(upkeep, alerts, self._findings, self._rules), sending]

    async def once(self) -> None:
        """Evaluate alerts and send the notices that are due, once."""
        await evaluate_once(self._ports.alerts, self._findings, self._rules)
        sender = NoticeSender(self._ports.alerts, self.channels(), self._rules)
        while await sender.round():
            pass

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the loops until the block ends: a process without a worker can report that no worker runs."""
        loops = asyncio.gather(*self.loops())
        try:
            yield
        finally:
            loops.cancel()
            await asyncio.gather(loops, return_exceptions=True)

    async def _findings(self) -> list[Finding]:
        return await findings(self._ports, self._settings.alerts.thresholds)
