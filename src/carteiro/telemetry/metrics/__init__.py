"""What a process counts, what its store shows, and both in Prometheus' words."""

from carteiro.telemetry.metrics.exposition import CONTENT_TYPE, Metrics
from carteiro.telemetry.metrics.measured import MeasuredStore
from carteiro.telemetry.metrics.measured_dead_letters import MeasuredDeadLetters
from carteiro.telemetry.metrics.tally import Tally

__all__ = ["CONTENT_TYPE", "MeasuredDeadLetters", "MeasuredStore", "Metrics", "Tally"]
