"""The metrics of an archive of dead tickets."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

from carteiro.observability.metrics.definitions import OTHER, Metric, counter, gauge
from carteiro.observability.metrics.exposition import Figures, page
from carteiro.tickets.archive.document import STATES, Kept

ARCHIVED = counter("tickets_archived_total", "Dead tickets that were archived.")
ARCHIVE_LAG = gauge("tickets_archive_lag", "Records of the dead letter topic not archived yet.")
ARCHIVE_UP = gauge("tickets_archive_up", "1: MongoDB takes dead tickets; 0: it is down.")
OLDEST_UNARCHIVED = gauge(
    "tickets_oldest_unarchived_seconds",
    "Age of the oldest dead ticket not archived, while MongoDB is down.",
)
IN_ARCHIVE = gauge(
    "tickets_in_archive",
    "Tickets in the archive when last read; dead and redriving ones wait for people.",
    *("state", "task_type"),
)
# In addition to those of the whole lane.
OWN = (ARCHIVED, ARCHIVE_LAG, ARCHIVE_UP, OLDEST_UNARCHIVED, IN_ARCHIVE)
MOST_TYPES = 100  # beyond it, the rarest are "other"


class ArchiveMetrics:
    """Figures of one process."""

    def __init__(self) -> None:
        self.archived = 0
        self._gauges: dict[Metric, Figures] = {
            ARCHIVE_LAG: 0,
            ARCHIVE_UP: 0,
            OLDEST_UNARCHIVED: 0,
            IN_ARCHIVE: {},
        }

    def holds(self, kept: Sequence[Kept]) -> None:
        """Set the numbers in the archive; each type has every state, so that an end is seen as 0."""
        by_type: Counter[str] = Counter()
        for each in kept:
            by_type[each.type] += each.count
        named = {type_ for type_, _ in by_type.most_common(MOST_TYPES) if type_}
        counts: Counter[tuple[str, str]] = Counter()
        for each in kept:
            counts[each.state, each.type if each.type in named else OTHER] += each.count
        self._gauges[IN_ARCHIVE] = {key: counts[key] for key in product(STATES, {OTHER, *named})}

    def set(self, gauge: Metric, number: float) -> None:
        """Set a gauge; `ALERTMANAGER_UP` is not shown before."""
        self._gauges[gauge] = number

    def page(self) -> bytes:
        """Return the page for Prometheus."""
        return page({ARCHIVED: self.archived, **self._gauges})
