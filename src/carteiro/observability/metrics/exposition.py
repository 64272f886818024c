"""The page that Prometheus scrapes, from plain figures."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client import core as prometheus
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from carteiro.observability.metrics.definitions import Metric
from carteiro.observability.metrics.histogram import Histogram

CONTENT_TYPE = CONTENT_TYPE_LATEST

Figure: TypeAlias = float | Histogram
Figures: TypeAlias = Figure | Mapping[Any, Figure]
"""The figure of a metric without labels; or each figure by its label, or by a tuple of its labels."""

_FAMILIES: Mapping[str, Any] = {
    "counter": prometheus.CounterMetricFamily,
    "gauge": prometheus.GaugeMetricFamily,
    "histogram": prometheus.HistogramMetricFamily,
}


def page(figures: Mapping[Metric, Figures]) -> bytes:
    """Render the metrics in this order."""
    return generate_latest(_Gathered(figures))


class _Gathered(Collector):
    def __init__(self, figures: Mapping[Metric, Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Family]:
        return [_family(*each) for each in self._figures.items()]


def _family(metric: Metric, figures: Figures) -> Any:  # noqa: ANN401 - the library has no type for all
    family = _FAMILIES[metric.type](metric.full_name, metric.told, labels=metric.labels)
    for key, figure in (figures if isinstance(figures, Mapping) else {(): figures}).items():
        labels = [str(each) for each in (key if isinstance(key, tuple) else (key,))]
        if isinstance(figure, Histogram):
            family.add_metric(labels, figure.cumulative(), figure.total)
        else:
            family.add_metric(labels, figure)
    return family
