"""Tell an Alertmanager what is wrong, for as long as it is.

Nothing waits for it. Before each sending it is asked what holds now, so that there is nothing to remember over a
restart; what holds is sent again before the Alertmanager would take it for over. An Alertmanager that does not
answer costs a line in the log, and gets the alerts when it is back. The labels are few and bounded, for they decide
which alerts are one; a ticket's id stands in the annotations.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import httpx

from carteiro.model import value
from carteiro.observability import log
from carteiro.observability.metrics.definitions import OTHER, gauge
from carteiro.runtime.posting import alert_document, client, post_alerts
from carteiro.tickets import events
from carteiro.tickets.deaths import Kind, Paused, Trouble, advice
from carteiro.tickets.scrubbing import scrubbed_start
from carteiro.tickets.ticket import TicketId

ALERTMANAGER_UP = gauge(
    "tickets_alertmanager_up",
    "1: Alertmanager took the last alerts; 0: it did not; absent: none sent.",
)

Labels: TypeAlias = tuple[tuple[str, str], ...]

DIED, HELD, PAUSED = "TicketDeadLettered", "TicketHeld", "TicketTypePaused"
WARNING, CRITICAL = "warning", "critical"
MOST_KINDS = 100  # beyond it, the others are one alert for all task types and errors

SEND_EVERY = timedelta(seconds=30)
GATHER = timedelta(seconds=1)  # a burst is one alert, not one for its first and one for the rest
LASTS = 6 * SEND_EVERY  # if nothing more is heard of us
_LONGEST_LABEL = 200
_LONGEST_ERROR = 1000
_LOOK = (
    "carteiro tickets dlq show {ticket} shows the last one, carteiro tickets dlq group counts all; {advice}. "
    "carteiro tickets dlq acknowledge ends this alert"
)
_RELEASE = "set tickets.dlq_enabled = true and restart: it becomes a dead letter; {advice}"
_MEND = (
    "fix what these tickets need: one is tried at least once a minute, and the pause ends when one succeeds. "
    "After tickets.pause_at_most_ms all are started, and those that keep failing become dead letters"
)


@value
class Alert:
    """Something that is wrong now."""

    labels: Labels
    summary: str
    error: str
    action: str
    ticket: TicketId = ""


Look: TypeAlias = Callable[[], Awaitable[Sequence[Alert]]]


# --- what there is to tell --------------------------------------------------------------------


def bounded(counts: Mapping[Kind, int]) -> dict[Kind, int]:
    """The same counts of not more kinds than there may be alerts: the rarest are counted together."""
    most = Counter(counts).most_common()
    kept = dict(most[:MOST_KINDS])
    if rest := sum(count for _, count in most[MOST_KINDS:]):
        kept[OTHER, OTHER] = kept.get((OTHER, OTHER), 0) + rest
    return kept


def dead_alert(kind: Kind, count: int, last: Trouble) -> Alert:
    """Dead tickets of one kind wait for people; ``last`` is one of them."""
    told = advice(last.reason, is_whole=last.is_whole)
    action = _LOOK.format(ticket=last.id, advice=told)
    said = f"Dead tickets that wait, of type {kind[0] or OTHER} with error {kind[1]}: {count}"
    return Alert(_labels(DIED, kind, WARNING), said, last.error[:_LONGEST_ERROR], action, last.id)


def held_alerts(held: Sequence[Trouble]) -> list[Alert]:
    """Dead tickets are held, each with all of its key, until people do something."""
    last = {each.kind: each for each in held}
    counts = bounded(Counter(each.kind for each in held))
    return [
        _held(kind, count, last.get(kind) or [*last.values()][-1]) for kind, count in counts.items()
    ]


def _held(kind: Kind, count: int, last: Trouble) -> Alert:
    action = _RELEASE.format(advice=advice(last.reason))
    said = f"Keys held by a dead ticket of type {kind[0] or OTHER} with error {kind[1]}: {count}"
    return Alert(_labels(HELD, kind, CRITICAL), said, last.error[:_LONGEST_ERROR], action, last.id)


def paused_alert(paused: Paused) -> Alert:
    """No tickets of a type are started."""
    said = f"Tickets of type {paused.type} cannot reach what they need: the type is paused"
    labels = _labels(PAUSED, (paused.type, paused.error_type), CRITICAL)
    return Alert(labels, said, scrubbed_start(paused.error, _LONGEST_ERROR), _MEND)


def _labels(name: str, kind: Kind, severity: str) -> Labels:
    type_, error_type = kind
    return (
        ("alertname", name),
        ("task_type", type_[:_LONGEST_LABEL] or OTHER),
        ("error_type", error_type[:_LONGEST_LABEL] or OTHER),
        ("severity", severity),
    )


# --- telling ----------------------------------------------------------------------------------


@dataclass
class Alerts:
    """Asks ``look`` what is wrong, now and then and after `news`, and tells it; without a URL it only asks.

    ``knows_all``: this process sees all alerts, so it also reports their end. Otherwise others may send the same,
    and an alert ends by itself when nobody sends it any more. ``on_answer`` hears whether the Alertmanager takes them.
    """

    url: str
    look: Look
    _: KW_ONLY
    knows_all: bool
    on_answer: Callable[[bool], None] = lambda _: None
    send_every: timedelta = SEND_EVERY
    gather: timedelta = GATHER
    lasts: timedelta = LASTS
    _since: dict[Labels, datetime] = field(default_factory=dict)
    _holding: dict[Labels, Alert] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _is_answering: bool = True

    def news(self) -> None:
        """Something began or ended: look soon."""
        self._news.set()

    async def run(self) -> None:
        """Look and tell, until cancelled."""
        async with client() as posting:
            while True:
                try:
                    await self._tell(posting)
                except Exception as error:  # noqa: BLE001 - nobody awaits this: a bug must be seen, and the next look may do
                    log.unexpected("alerts", error)
                await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        with suppress(TimeoutError):
            # Not wait_for: before Python 3.12 it may swallow a cancellation.
            async with asyncio.timeout(self.send_every.total_seconds()):
                await self._news.wait()
            await asyncio.sleep(self.gather.total_seconds())
        self._news.clear()

    async def _tell(self, posting: httpx.AsyncClient) -> None:
        holds = {each.labels: each for each in await self.look()}
        now = datetime.now(UTC)
        over = {labels: each for labels, each in self._holding.items() if labels not in holds}
        self._holding = holds
        self._since = {labels: self._since.get(labels, now) for labels in (*holds, *over)}
        ends = now + self.lasts
        body = [self._document(each, ends) for each in holds.values()]
        if self.knows_all:
            body += [self._document(each, now) for each in over.values()]
        for labels in over:
            del self._since[labels]
        if self.url and body:
            self._tell_of(await post_alerts(posting, self.url, body))

    def _document(self, alert: Alert, ends: datetime) -> Mapping[str, Any]:
        annotations = {
            "summary": alert.summary,
            "description": alert.error,
            "ticket_id": alert.ticket,
            "action": alert.action,
        }
        starts = self._since[alert.labels]
        return alert_document(dict(alert.labels), annotations, starts=starts, ends=ends)

    def _tell_of(self, fault: str | None) -> None:
        self.on_answer(fault is None)
        if fault is not None and self._is_answering:
            events.alertmanager_away(self.url, fault)
        elif fault is None and not self._is_answering:
            events.alertmanager_back(self.url)
        self._is_answering = fault is None
