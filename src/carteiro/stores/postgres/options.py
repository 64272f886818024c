"""What the store needs to know beyond its address."""

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
    prepared_statements: bool = (
        True  # off behind a pooler that gives a connection to others between transactions
    )

    has_queue: bool = True  # else jobs are kept elsewhere

    @property
    def dead_letter_ttl_ms(self) -> int:
        """As it is stored."""
        return self.dead_letter_ttl // MILLISECOND
