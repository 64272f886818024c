"""Alerts are moved by what holds now, and people are notified.

Both loops run in one process. A crash loses no notice: it is stored with the change that it tells of, and stays until
its channel has it. A channel may get the same notice twice, under the same id.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from carteiro.errors import NotTold
from carteiro.maintenance.loop import run_led
from carteiro.maintenance.watch import TASK
from carteiro.model import TenantId
from carteiro.model.alerts import AlertRules, DueNotice, Finding
from carteiro.observability import log
from carteiro.policy import alerting
from carteiro.ports.alerts import Alerts, Channel
from carteiro.ports.upkeep import Upkeep
from carteiro.views import notices

_PAGE = 20
_MOST_OPEN = 500
_ROUND_S = 10.0  # after it, no further notice is begun: the lead must not end meanwhile
_TELL_S = 15.0
_HOLD_S = 30.0
_LONGEST_ERROR = 300


async def raise_alerts(  # noqa: PLR0913 - the ports, and a setting each
    upkeep: Upkeep,
    alerts: Alerts,
    findings: Callable[[], Awaitable[Sequence[Finding]]],
    rules: AlertRules,
    *,
    dead_letters_every: timedelta | None,
    system: TenantId,
    every: timedelta = timedelta(seconds=15),
) -> None:
    """Move alerts until cancelled; ``dead_letters_every``: interval of the notices about them, None: there are none."""

    async def page() -> bool:
        await raise_once(
            alerts, findings, rules, dead_letters_every=dead_letters_every, system=system
        )
        return False

    await run_led(upkeep, TASK, page, every=every)


async def raise_once(
    alerts: Alerts,
    findings: Callable[[], Awaitable[Sequence[Finding]]],
    rules: AlertRules,
    *,
    dead_letters_every: timedelta | None,
    system: TenantId,
) -> None:
    """Move alerts by one look; also for one-shot processes: looks at the same time are one after the other."""
    await alerts.move(await findings(), rules)
    if dead_letters_every is not None:
        await alerts.note_dead_letters(every=dead_letters_every, but=system)


async def tell(
    upkeep: Upkeep,
    alerts: Alerts,
    channels: Mapping[str, Channel],
    rules: AlertRules,
    *,
    every: timedelta = timedelta(seconds=5),
) -> None:
    """Tell people until cancelled."""
    await run_led(upkeep, TASK, Teller(alerts, channels, rules).round, every=every)


class Teller:
    """Gives notices to channels; one that fails is tried again later, and holds no other one up."""

    def __init__(self, alerts: Alerts, channels: Mapping[str, Channel], rules: AlertRules) -> None:
        self._alerts = alerts
        self._channels = channels
        self._rules = rules
        self._hold_at = 0.0
        self._away: set[str] = set()

    async def round(self) -> bool:
        """Give each channel its due notices; True if there may be more."""
        has_more = False
        if await self._alerts.spread(self._channels):
            has_more = any(await asyncio.gather(*map(self._tell_all, self._channels)))
        if time.monotonic() >= self._hold_at:
            self._hold_at = time.monotonic() + _HOLD_S
            await self._hold()
        return has_more

    async def _tell_all(self, channel: str) -> bool:
        end = time.monotonic() + _ROUND_S
        due = await self._alerts.due(channel, limit=_PAGE)
        for each in due:
            if time.monotonic() >= end or not await self._tell(channel, each):
                return False
        return len(due) == _PAGE

    async def _tell(self, channel: str, due: DueNotice) -> bool:
        """Return True if the channel has the notice, or never will."""
        notice = due.notice
        error = await _fault(self._channels[channel].tell(notice))
        if error is not None and not alerting.is_given_up(notice, datetime.now(UTC)):
            wait = alerting.wait_after(due.tries)
            await self._alerts.put_off(notice.id, channel, wait=wait, error=error)
            log.notice_put_off(notice, channel, error, wait=wait)
            return False
        if error is not None:
            log.notice_not_delivered(notice, channel, error, notices.text(notice))
        await self._alerts.delivered(notice.id, channel)
        return True

    async def _hold(self) -> None:
        alerts = (await self._alerts.list(limit=_MOST_OPEN)).rows
        silences = await self._alerts.silences()
        firing = alerting.standing(alerts, silences, self._rules, datetime.now(UTC))
        for name, channel in self._channels.items():
            error = await _fault(channel.hold(firing))
            if error is not None and name not in self._away:
                log.channel_away(name, error)
            (self._away.discard if error is None else self._away.add)(name)


async def _fault(telling: Awaitable[None]) -> str | None:
    """The error of a channel; None if there is none."""
    try:
        async with asyncio.timeout(_TELL_S):
            await telling
    except NotTold as error:
        return str(error)[:_LONGEST_ERROR]
    except TimeoutError:
        return f"no answer within {_TELL_S:g} s"
    except Exception as error:  # noqa: BLE001 - a bug of one channel must not hold up the others
        log.unexpected("notices", error)
        return type(error).__name__
    return None
