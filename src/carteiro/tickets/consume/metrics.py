"""The metrics of the ticket lane: those that dashboards know by the seed's names, and a few of our own.

Counted as plain numbers, since that is done for every ticket, and made into families when they are read. Labels
are few whatever comes: a task type that nobody handles is "other".
"""

from collections import Counter
from collections.abc import Collection
from itertools import product
from typing import get_args

from carteiro.observability.metrics.definitions import OTHER, Metric, counter, gauge, histogram
from carteiro.observability.metrics.exposition import Figures, page
from carteiro.observability.metrics.histogram import Histogram
from carteiro.observability.metrics.labels import Codes
from carteiro.tickets.alerts import ALERTMANAGER_UP
from carteiro.tickets.ticket import Reason, TaskType

_SEED = "worker_agent_"  # the prefix that dashboards know

DLQ_MESSAGES = counter(
    "dlq_messages_total",
    "Tickets put into the dead letter topic.",
    *("reason", "task_type"),
    prefix=_SEED,
)
RETRY_COUNT = histogram(
    "ticket_retry_count",
    "Failures of a ticket when it was done or dead.",
    buckets=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0),
    prefix=_SEED,
)
DLQ_PUBLISH_ERRORS = counter(
    "dlq_publish_errors_total",
    "Failed tries to put a dead letter into its topic; each is retried.",
    "error_type",
    prefix=_SEED,
)
DONE = counter("tickets_done_total", "Tickets done.", "task_type")
FAILED = counter("tickets_failed_total", "Executions that failed.", "task_type")
LAG = gauge("tickets_lag", "Records of the topic that are not committed yet.")
HELD_KEYS = gauge("tickets_held_keys", "Keys that wait for a retry, or for their dead letter.")
REDIS_UP = gauge("tickets_redis_up", "1: Redis counts failures; 0: it is down; absent: not used.")
PAUSED = gauge(
    "tickets_paused", "1: the type is paused, too many tickets cannot reach a service.", "task_type"
)
ALL = (
    *(DLQ_MESSAGES, RETRY_COUNT, DLQ_PUBLISH_ERRORS, DONE, FAILED),
    *(LAG, HELD_KEYS, REDIS_UP, PAUSED, ALERTMANAGER_UP),
)

# Those that are there from the start: the first failure is an increase only of what was 0 before.
_FORESEEN = ("TimeoutError", "MSG_SIZE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "QueueFull", OTHER)


class TicketMetrics:
    """Figures of one process; ``types`` are the task types that have a label of their own."""

    def __init__(self, types: Collection[TaskType]) -> None:
        self._types = {type: type for type in types if type}
        self._errors = Codes()
        labels = sorted({*self._types, OTHER})
        reasons: tuple[Reason, ...] = get_args(Reason)
        self._dead: Counter[tuple[str, str]] = Counter(dict.fromkeys(product(reasons, labels), 0))
        self._publish_errors = Counter({self._errors.label(each): 0 for each in _FORESEEN})
        self._done, self._at_once, self._failed, self._paused = (
            Counter(dict.fromkeys(labels, 0)) for _ in range(4)
        )
        self._retry_count = Histogram(RETRY_COUNT.buckets)
        self._gauges: dict[Metric, Figures] = {LAG: 0, HELD_KEYS: 0}
        self._gauges |= {REDIS_UP: {}, ALERTMANAGER_UP: {}}

    def done(self, type: TaskType, *, failures: int) -> None:
        """Count a ticket that is done, with its failures."""
        self._done[self._types.get(type, OTHER)] += 1
        self._retry_count.observe(failures)

    def done_at_once(self, type: TaskType, total: int) -> None:
        """Set the total of tickets that are done and never failed; `done` counts the others."""
        label = self._types.get(type, OTHER)
        new = total - self._at_once[label]
        self._at_once[label] = total
        self._done[label] += new
        self._retry_count.observe(0, new)

    def failed(self, type: TaskType) -> None:
        """An execution failed."""
        self._failed[self._types.get(type, OTHER)] += 1

    def died(self, type: TaskType, reason: Reason, *, failures: int) -> None:
        """Count a ticket that is in the dead letter topic, with its failures."""
        self._dead[reason, self._types.get(type, OTHER)] += 1
        self._retry_count.observe(failures)

    def publish_failed(self, error_type: str) -> None:
        """A dead letter could not be put into its topic."""
        self._publish_errors[self._errors.label(error_type)] += 1

    def pauses(self, type: TaskType, *, paused: bool) -> None:
        """A type is paused, or goes on."""
        self._paused[self._types.get(type, OTHER)] = paused

    def set(self, gauge: Metric, number: float) -> None:
        """Set a gauge; `REDIS_UP` and `ALERTMANAGER_UP` are not shown before."""
        self._gauges[gauge] = number

    def page(self) -> bytes:
        """Return the page for Prometheus."""
        counts: dict[Metric, Figures] = {
            DLQ_MESSAGES: self._dead,
            DLQ_PUBLISH_ERRORS: self._publish_errors,
            DONE: self._done,
            FAILED: self._failed,
            RETRY_COUNT: self._retry_count,
            PAUSED: self._paused,
        }
        return page(counts | self._gauges)
