"""A metric and its figures as a family of the Prometheus client."""

from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from carteiro.observability.metrics.definitions import Metric
from carteiro.observability.metrics.histogram import Histogram

Labels: TypeAlias = tuple[str, ...]


def numbers(metric: Metric, figures: Iterable[tuple[Labels, float]]) -> Family:
    """Return a counter or a gauge with a figure for each set of labels."""
    family: CounterMetricFamily | GaugeMetricFamily
    if metric.type == "counter":
        family = CounterMetricFamily(metric.full_name, metric.told, labels=metric.labels)
    else:
        family = GaugeMetricFamily(metric.full_name, metric.told, labels=metric.labels)
    for labels, number in figures:
        family.add_metric(labels, number)
    return family


def histograms(metric: Metric, figures: Iterable[tuple[Labels, Histogram]]) -> Family:
    """Return a histogram for each set of labels."""
    family = HistogramMetricFamily(metric.full_name, metric.told, labels=metric.labels)
    for labels, each in figures:
        family.add_metric(labels, each.cumulative(), each.total)
    return family
