"""What a process counts, what its store shows, and both in Prometheus' words."""

from carteiro.observability.metrics.exposition import CONTENT_TYPE, Metrics
from carteiro.observability.metrics.measured import MeasuredStore
from carteiro.observability.metrics.measured_dead_letters import MeasuredDeadLetters
from carteiro.observability.metrics.tally import Tally

__all__ = ["CONTENT_TYPE", "MeasuredDeadLetters", "MeasuredStore", "Metrics", "Tally"]
