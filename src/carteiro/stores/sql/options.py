"""Options that every SQL store has."""

from datetime import timedelta

from carteiro.model import MILLISECOND, Fairness, value


@value
class SqlOptions:
    """Sharing and lifetimes."""

    fairness: Fairness = Fairness()
    dead_letter_ttl: timedelta = timedelta(days=7)
    has_queue: bool = True  # else a separate queue has the jobs

    @property
    def dead_letter_ttl_ms(self) -> int:
        """As it is stored."""
        return self.dead_letter_ttl // MILLISECOND
