"""The page that Prometheus scrapes."""

from collections.abc import Iterable

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from carteiro.observability.metrics.families import Counted, shown
from carteiro.observability.metrics.gauges import Gauges
from carteiro.observability.metrics.tally import Tally
from carteiro.ports import Backend

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The metrics of one post office: what it counted itself, and what its store shows.

    ``top`` is how many tenants have a label of their own.
    """

    def __init__(self, backend: Backend, tally: Tally, *, top: int) -> None:
        self._counted = Counted(tally, top=top)
        self._gauges = Gauges(backend, top=top)
        self._top = top

    async def exposition(self) -> bytes:
        """The page, whatever state the store is in."""
        reading = await self._gauges.read()
        families = [*self._counted.families(), *shown(reading, top=self._top)]
        return generate_latest(_Gathered(families))


class _Gathered(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families
