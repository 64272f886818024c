"""Tell an Alertmanager of dead tickets: one alert for all that are alike, for as long as they keep coming.

Nothing waits for it. What is told is noted in memory, bounded, and sent by a loop of its own; an
Alertmanager that does not answer costs a line in the log and alerts that come late, or not at all.
The labels are few and bounded, for they decide which alerts are one; a ticket's id stands in the annotations.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import httpx

from carteiro.model import value
from carteiro.telemetry.metrics.definitions import OTHER
from carteiro.tickets import events
from carteiro.tickets.advice import advice
from carteiro.tickets.dead_letter import DeadTicket, Death
from carteiro.tickets.scrubbing import scrubbed_start
from carteiro.tickets.ticket import TicketId

Labels: TypeAlias = tuple[tuple[str, str], ...]

DIED, HELD = "TicketDeadLettered", "TicketHeld"
WARNING, CRITICAL = "warning", "critical"
MOST_GROUPS = 100  # beyond it, what is new is one group for all task types and errors
_RARE = {"task_type": OTHER, "error_type": OTHER}

SEND_EVERY = timedelta(minutes=1)
ACTIVE_FOR = timedelta(minutes=5)  # after the last death of its kind
GATHER = timedelta(seconds=1)  # a burst is one alert, not one for its first and one for the rest
_ENDS_AFTER = 3 * SEND_EVERY  # if nothing more is heard of us
_PATIENCE_S = 10.0
_LAST_PATIENCE_S = 2.0
_LONGEST_LABEL = 200
_LONGEST_ERROR = 1000
_LOOK = "carteiro tickets dlq show {ticket} shows the last one, carteiro tickets dlq group all; {advice}"
_RELEASE = "set tickets.dlq_enabled and restart, then it is a dead letter; {advice}"


@value
class _Group:
    """Deaths that are one alert."""

    began: datetime
    last: datetime
    count: int
    ticket: TicketId
    error: str
    action: str
    is_sent: bool = False


class Alerts:
    """What is to be told, and the loop that tells it; without a URL it does nothing."""

    def __init__(
        self,
        url: str,
        *,
        on_drop: Callable[[int], None],
        send_every: timedelta = SEND_EVERY,
        gather: timedelta = GATHER,
        active_for: timedelta = ACTIVE_FOR,
    ) -> None:
        self._url = url
        self._on_drop = on_drop
        self._send_every, self._gather, self._active_for = send_every, gather, active_for
        self._groups: dict[Labels, _Group] = {}
        self._news = asyncio.Event()
        self._is_answering = True

    def died(self, dead: DeadTicket) -> None:
        """Note that a ticket died; at once, whatever the Alertmanager does."""
        kind = str(dead.metadata["error_type"])
        told = advice(dead.reason, is_whole=dead.missing is None)
        self._note(
            _labels(DIED, dead.type, kind, WARNING),
            dead.id,
            dead.metadata["original_error"],
            _LOOK.format(ticket=dead.id, advice=told),
        )

    def held(self, death: Death) -> None:
        """Note that a dead ticket is held, with all of its key, until people do something."""
        ticket = death.ticket
        labels = _labels(HELD, ticket.type, death.error_type, CRITICAL)
        action = _RELEASE.format(advice=advice(death.reason))
        self._note(labels, ticket.id, scrubbed_start(death.error, _LONGEST_ERROR), action)

    def _note(self, labels: Labels, ticket: TicketId, error: str, action: str) -> None:
        if not self._url:
            return
        if labels not in self._groups and len(self._groups) >= MOST_GROUPS:
            labels = tuple((name, _RARE.get(name, said)) for name, said in labels)
        before, now = self._groups.get(labels), datetime.now(UTC)
        self._groups[labels] = _Group(
            began=now if before is None else before.began,
            last=now,
            count=1 if before is None else before.count + 1,
            ticket=ticket,
            error=error[:_LONGEST_ERROR],
            action=action,
            is_sent=before is not None and before.is_sent,
        )
        self._news.set()

    async def run(self) -> None:
        """Send what is told and send it again while it is active, until cancelled."""
        if not self._url:
            return
        # Proxies of the environment are for the world outside.
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                while True:
                    await self._wait_for_news()
                    await self._send(client, _PATIENCE_S)
            finally:
                await self._send(client, _LAST_PATIENCE_S)

    async def _wait_for_news(self) -> None:
        with suppress(TimeoutError):
            # Not wait_for: before Python 3.12 it may swallow a cancellation.
            async with asyncio.timeout(self._send_every.total_seconds()):
                await self._news.wait()
            await asyncio.sleep(self._gather.total_seconds())
        self._news.clear()

    async def _send(self, client: httpx.AsyncClient, patience: float) -> None:
        now = datetime.now(UTC)
        sending = dict(self._groups)
        if not sending:
            return
        body = [self._alert(labels, group, now) for labels, group in sending.items()]
        fault = await self._post(client, body, patience)
        self._tell_of(fault)
        for labels, group in sending.items():
            self._settle(labels, group, now, is_sent=fault is None)

    async def _post(self, client: httpx.AsyncClient, body: object, patience: float) -> str | None:
        """What went wrong, if something did."""
        try:
            async with asyncio.timeout(patience):
                answer = await client.post(f"{self._url.rstrip('/')}/api/v2/alerts", json=body)
        except TimeoutError:
            return f"no answer within {patience:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return str(error) or type(error).__name__
        return None if answer.is_success else f"it answers {answer.status_code}"

    def _is_over(self, group: _Group, now: datetime) -> bool:
        return now - group.last >= self._active_for

    def _alert(self, labels: Labels, group: _Group, now: datetime) -> Mapping[str, Any]:
        named = dict(labels)
        ends = now if self._is_over(group, now) else now + _ENDS_AFTER
        what = f"Tickets of {named['task_type']} that died of {named['error_type']}"
        return {
            "labels": named,
            "annotations": {
                "summary": f"{what}: {group.count}",
                "description": group.error,
                "ticket_id": group.ticket,
                "action": group.action,
            },
            "startsAt": group.began.isoformat(),
            "endsAt": ends.isoformat(),
        }

    def _settle(self, labels: Labels, sent: _Group, now: datetime, *, is_sent: bool) -> None:
        """Forget what is over; what was never told, and is over, is dropped."""
        group = self._groups[labels]
        if self._is_over(group, now) and group.count == sent.count:
            del self._groups[labels]
            if not (is_sent or group.is_sent):
                self._on_drop(group.count)
        elif is_sent:
            self._groups[labels] = replace(group, is_sent=True)

    def _tell_of(self, fault: str | None) -> None:
        if fault is not None and self._is_answering:
            events.alertmanager_away(self._url, fault)
        elif fault is None and not self._is_answering:
            events.alertmanager_back(self._url)
        self._is_answering = fault is None


def _labels(name: str, task_type: str, error_type: str, severity: str) -> Labels:
    return (
        ("alertname", name),
        ("task_type", task_type[:_LONGEST_LABEL] or OTHER),
        ("error_type", error_type[:_LONGEST_LABEL] or OTHER),
        ("severity", severity),
    )
