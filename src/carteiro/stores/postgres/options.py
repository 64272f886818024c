"""Options of the store, in addition to its address."""

from collections.abc import Callable
from datetime import timedelta

from carteiro.model import Fairness, value
from carteiro.policy.lifecycle import MILLISECOND


@value
class PostgresOptions:
    """Clock, sharing, lifetimes and limits; ``clock`` None: the server's."""

    clock: Callable[[], int] | None = None
    fairness: Fairness = Fairness()
    dead_letter_ttl: timedelta = timedelta(days=7)
    connections: int = 10
    command_timeout: timedelta = timedelta(seconds=30)
    # Off behind a pooler that shares connections between transactions.
    prepared_statements: bool = True

    has_queue: bool = True  # else a separate queue has the jobs

    @property
    def dead_letter_ttl_ms(self) -> int:
        """As it is stored."""
        return self.dead_letter_ttl // MILLISECOND
