"""Options of the queue, in addition to its address."""

from collections.abc import Callable
from datetime import timedelta

from carteiro.model import Fairness, value


@value
class RedisOptions:
    """Clock, sharing and patience; ``clock`` None: the server's."""

    clock: Callable[[], int] | None = None
    fairness: Fairness = Fairness()
    patience: timedelta = timedelta(milliseconds=200)  # the longest wait for a put
