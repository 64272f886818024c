"""The metrics of an archive of dead tickets."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from carteiro.telemetry.metrics.definitions import Metric
from carteiro.tickets.metrics import ALERTS_DROPPED

ARCHIVED = Metric("carteiro_tickets_archived_total", "counter", "Dead tickets that were archived.")
ARCHIVE_LAG = Metric(
    "carteiro_tickets_archive_lag", "gauge", "Records of the dead letter topic not archived yet."
)
ARCHIVE_UP = Metric(
    "carteiro_tickets_archive_up", "gauge", "1 if MongoDB takes dead tickets, 0 if it is away."
)
OLDEST_UNARCHIVED = Metric(
    "carteiro_tickets_oldest_unarchived_seconds",
    "gauge",
    "While MongoDB is away, the age of the oldest dead ticket in hand.",
)
OWN = (ARCHIVED, ARCHIVE_LAG, ARCHIVE_UP, OLDEST_UNARCHIVED)  # beside those of the whole lane


class ArchiveMetrics:
    """What one process counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.archived = self._counter(ARCHIVED)
        self.lag = self._gauge(ARCHIVE_LAG)
        self.is_up = self._gauge(ARCHIVE_UP)
        self.oldest_unarchived = self._gauge(OLDEST_UNARCHIVED)
        self.alerts_dropped = self._counter(ALERTS_DROPPED)

    def page(self) -> bytes:
        """What Prometheus scrapes."""
        return generate_latest(self.registry)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.told, registry=self.registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.told, registry=self.registry)
