"""Reports of processes about themselves: only what no other process can see."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from carteiro.model.basics import value


@value
class QueueReport:
    """A queue on a server of its own, as a process sees it.

    ``rejected`` and ``out_of_memory``: connections and commands that the server refused in the last minutes.
    ``away_since``: it is unreachable; then the other fields are the last known ones.
    """

    used_bytes: int = 0
    max_bytes: int = 0  # 0: no limit
    rejected: int = 0
    out_of_memory: int = 0
    away_since: datetime | None = None


@value
class Report:
    """State of one process: the providers whose circuit is open, with the time since when, and its queue.

    ``opened``: when each of these circuits last opened; after its pause a circuit is half open.
    """

    process: str
    circuits: Mapping[str, datetime]
    queue: QueueReport | None = None
    opened: Mapping[str, datetime] = field(default_factory=dict)
