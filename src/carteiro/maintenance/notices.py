"""Notices are given to their channels.

A notice stays in the store until its channel has it. After a crash the channel may get it again, under the same id.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime, timedelta

from carteiro.errors import HandedOver, NotDelivered
from carteiro.maintenance.loop import run_led
from carteiro.maintenance.watch import SENDING
from carteiro.model.alerts import AlertRules, DueNotice
from carteiro.observability import log, notice_events
from carteiro.policy.notices import is_given_up, standing, wait_after
from carteiro.ports.alerts import Alerts, Channel
from carteiro.ports.upkeep import Upkeep
from carteiro.views import notices

_PAGE = 20
_MOST_OPEN = 500
_ROUND_S = 10.0  # after it, no further notice is begun: the lead must not end meanwhile
_SEND_S = 15.0
_REPEAT_S = 30.0
_LONGEST_ERROR = 300


async def send_notices(
    upkeep: Upkeep,
    alerts: Alerts,
    channels: Mapping[str, Channel],
    rules: AlertRules,
    *,
    every: timedelta = timedelta(seconds=5),
) -> None:
    """Send notices until cancelled."""
    await run_led(upkeep, SENDING, NoticeSender(alerts, channels, rules).round, every=every)


class NoticeSender:
    """Sends notices to channels; one that fails is tried again later, without delaying the others."""

    def __init__(self, alerts: Alerts, channels: Mapping[str, Channel], rules: AlertRules) -> None:
        self._alerts = alerts
        self._channels = channels
        self._rules = rules
        self._repeat_at = 0.0
        self._away: set[str] = set()

    async def round(self) -> bool:
        """Give each channel its due notices; True if there may be more."""
        has_more = False
        if await self._alerts.spread(self._channels):
            has_more = any(await asyncio.gather(*map(self._send_all, self._channels)))
        if time.monotonic() >= self._repeat_at:
            self._repeat_at = time.monotonic() + _REPEAT_S
            await self._repeat()
        return has_more

    async def _send_all(self, channel: str) -> bool:
        """Return True if there may be more; the rest of a channel that fails slowly waits for the next round."""
        end, has_failed = time.monotonic() + _ROUND_S, False
        due = await self._alerts.due(channel, limit=_PAGE)
        for each in due:
            if time.monotonic() >= end:
                return not has_failed
            has_failed |= await self._has_failed(channel, each)
        return len(due) == _PAGE

    async def _has_failed(self, channel: str, due: DueNotice) -> bool:
        """Send a notice; one that the channel does not take is tried again later."""
        notice = due.notice
        error = await _fault(self._channels[channel].send(notice))
        if error is None:
            await self._alerts.delivered(notice.id, channel)
            return False
        why = str(error)[:_LONGEST_ERROR]
        if is_given_up(notice, datetime.now(UTC)):
            notice_events.not_delivered(notice, channel, why, notices.text(notice))
            await self._alerts.delivered(notice.id, channel)
            return True
        wait = wait_after(due.tries)
        await self._alerts.put_off(notice.id, channel, wait=wait, error=why)
        if isinstance(error, HandedOver):
            return False
        notice_events.put_off(notice, channel, why, wait=wait)
        return True

    async def _repeat(self) -> None:
        alerts = (await self._alerts.list(limit=_MOST_OPEN)).rows
        silences = await self._alerts.silences()
        firing = standing(alerts, silences, self._rules, datetime.now(UTC))
        for name, channel in self._channels.items():
            error = await _fault(channel.repeat(firing))
            if error is not None and name not in self._away:
                notice_events.channel_away(name, str(error))
            (self._away.discard if error is None else self._away.add)(name)


async def _fault(sending: Awaitable[None]) -> NotDelivered | None:
    """The error of a channel; None if there is none."""
    try:
        async with asyncio.timeout(_SEND_S):
            await sending
    except NotDelivered as error:
        return error
    except TimeoutError:
        return NotDelivered(f"no answer within {_SEND_S:g} s")
    except Exception as error:  # noqa: BLE001 - a bug in one channel must not stop the others
        log.unexpected("notices", error)
        return NotDelivered(type(error).__name__)
    return None
