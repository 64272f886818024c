"""The metrics of an archive of dead tickets."""

from collections import Counter
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client import Counter as Counting

from carteiro.observability.metrics.definitions import OTHER, Metric
from carteiro.tickets.alerts import ALERTMANAGER_UP
from carteiro.tickets.archive.document import STATES, Kept

ARCHIVED = Metric("tickets_archived_total", "counter", "Dead tickets that were archived.")
ARCHIVE_LAG = Metric(
    "tickets_archive_lag", "gauge", "Records of the dead letter topic not archived yet."
)
ARCHIVE_UP = Metric(
    "tickets_archive_up", "gauge", "1 if MongoDB takes dead tickets, 0 if it is down."
)
OLDEST_UNARCHIVED = Metric(
    "tickets_oldest_unarchived_seconds",
    "gauge",
    "While MongoDB is down, the age of the oldest dead ticket in hand.",
)
IN_ARCHIVE = Metric(
    "tickets_in_archive",
    "gauge",
    "Tickets in the archive, as it was last looked at; dead and redriving ones wait for people.",
    ("state", "task_type"),
)
# In addition to those of the whole lane.
OWN = (ARCHIVED, ARCHIVE_LAG, ARCHIVE_UP, OLDEST_UNARCHIVED, IN_ARCHIVE)
MOST_TYPES = 100  # beyond it, the rarest are "other"


class ArchiveMetrics:
    """Figures of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.archived = self._counter(ARCHIVED)
        self.lag = self._gauge(ARCHIVE_LAG)
        self.is_up = self._gauge(ARCHIVE_UP)
        self.oldest_unarchived = self._gauge(OLDEST_UNARCHIVED)
        self._in_archive = Gauge(
            IN_ARCHIVE.full_name, IN_ARCHIVE.told, IN_ARCHIVE.labels, registry=self.registry
        )
        self._alertmanager_up: Gauge | None = None

    def holds(self, kept: Sequence[Kept]) -> None:
        """Set the numbers in the archive; each type has every state, so that an end is seen as 0."""
        by_type: Counter[str] = Counter()
        for each in kept:
            by_type[each.type] += each.count
        named = {type_ for type_, _ in by_type.most_common(MOST_TYPES) if type_}
        counts: Counter[tuple[str, str]] = Counter()
        for each in kept:
            counts[each.state, each.type if each.type in named else OTHER] += each.count
        self._in_archive.clear()
        for type_ in {OTHER, *named}:
            for state in STATES:
                self._in_archive.labels(state, type_).set(counts[state, type_])

    def alertmanager_is(self, up: bool) -> None:  # noqa: FBT001 - as `Alerts` tells it
        """The Alertmanager took alerts, or did not."""
        if self._alertmanager_up is None:
            self._alertmanager_up = self._gauge(ALERTMANAGER_UP)
        self._alertmanager_up.set(up)

    def page(self) -> bytes:
        """Return the page for Prometheus."""
        return generate_latest(self.registry)

    def _counter(self, metric: Metric) -> Counting:
        return Counting(metric.full_name, metric.told, registry=self.registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.full_name, metric.told, registry=self.registry)
