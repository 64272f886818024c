"""Counts of a process and gauges of its store, as Prometheus metrics."""

from carteiro.observability.metrics.exposition import CONTENT_TYPE
from carteiro.observability.metrics.families import Metrics
from carteiro.observability.metrics.measured import measured_store
from carteiro.observability.metrics.measured_dead_letters import measured_dead_letters
from carteiro.observability.metrics.tally import Tally

__all__ = ["CONTENT_TYPE", "Metrics", "Tally", "measured_dead_letters", "measured_store"]
