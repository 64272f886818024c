"""A worker of the ticket lane with all its parts: made from settings, run, and taken apart again."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

from carteiro.config import TicketSettings
from carteiro.observability.tracing import Tracing
from carteiro.runtime.ending import ended
from carteiro.tickets import events
from carteiro.tickets.alerts import ALERTMANAGER_UP, Alert, Alerts, held_alerts, paused_alert
from carteiro.tickets.consume.counter import RetryCounter
from carteiro.tickets.consume.handlers import Tickets, with_urls
from carteiro.tickets.consume.http_handler import HttpHandler, http_client
from carteiro.tickets.consume.kafka_log import KafkaLog
from carteiro.tickets.consume.metrics import HELD_KEYS, LAG, REDIS_UP, TicketMetrics
from carteiro.tickets.consume.runner import Runner
from carteiro.tickets.consume.tracing import traced
from carteiro.tickets.consume.watch import Watch
from carteiro.tickets.dead_letters.publisher import Publisher
from carteiro.tickets.dead_letters.topic import have_dlq_topic
from carteiro.tickets.kafka_client import client_options


class TicketWorker:
    """Runs the handlers, and posts to ``urls`` the tickets of types that have one."""

    def __init__(
        self,
        settings: TicketSettings,
        tickets: Tickets,
        *,
        urls: Mapping[str, str],
        tracing: Tracing | None = None,
    ) -> None:
        self._settings = settings
        self._http = http_client(settings.concurrency)
        handlers = with_urls(tickets, lambda url: HttpHandler(url, self._http, tracing), urls)
        if tracing is not None:
            handlers = traced(handlers, tracing)
        self._metrics = TicketMetrics([each.type for each in handlers])
        self._alerts = Alerts(
            settings.alertmanager,
            self._look,
            knows_all=False,  # other workers may hold such tickets, too
            on_answer=partial(self._metrics.set, ALERTMANAGER_UP),
        )
        self._watch = Watch(self._metrics, self._alerts.news)
        redis_is = partial(self._metrics.set, REDIS_UP)
        self._counter = RetryCounter(settings.redis, on_change=redis_is)
        if settings.redis:
            redis_is(self._counter.is_up)
        self._publisher = Publisher(settings)
        log = KafkaLog(
            client_options(settings),
            topic=settings.topic,
            group=settings.group,
            waits=self._watch.waits,
        )
        self._runner = Runner(
            settings,
            handlers,
            log=log,
            counter=self._counter,
            topic=self._publisher,
            watch=self._watch,
        )
        self.stop, self.stop_now = self._runner.stop, self._runner.stop_now

    async def run(self) -> None:
        """Work until it is stopped."""
        async with AsyncExitStack() as parts:
            parts.push_async_callback(self._http.aclose)
            parts.push_async_callback(self._counter.close)
            parts.push_async_callback(self._publisher.close)
            # Tickets need not wait for the topic: one that dies before it is there is kept until it is.
            helpers = [have_dlq_topic(self._settings)] if self._settings.dlq_enabled else []
            helpers += [self._alerts.run()] if self._settings.alertmanager else []
            parts.push_async_callback(ended, *map(asyncio.create_task, helpers))
            events.tickets_started(
                topic=self._settings.topic,
                group=self._settings.group,
                types=[line.type for line in self._runner.lines],
                dlq_topic=self._settings.dlq_topic if self._settings.dlq_enabled else "",
            )
            await self._runner.run()

    @property
    def waits_for(self) -> str:
        """The server that it waits for, with its error; "": none."""
        return self._watch.waits_for

    @property
    def paused(self) -> list[str]:
        """Types that are paused, since what their tickets need cannot be reached."""
        return [*self._watch.paused]

    def page(self) -> bytes:
        """Its figures, for Prometheus."""
        for line in self._runner.lines:
            self._metrics.done_at_once(line.type, line.done_at_once)
        self._metrics.set(LAG, self._runner.lag)
        self._metrics.set(HELD_KEYS, self._runner.held_keys)
        return self._metrics.page()

    async def _look(self) -> list[Alert]:
        """Return the alerts of now."""
        return [*held_alerts(self._runner.held), *map(paused_alert, self._watch.paused.values())]
