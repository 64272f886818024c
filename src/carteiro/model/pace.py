"""Rates and health of providers."""

from datetime import datetime, timedelta

from carteiro.model.basics import value


@value
class Drawn:
    """Calls that a process may make to a provider now; ``rate`` is for all processes, None: no limit.

    ``wait`` is the time until the next call is free. ``processes`` share the rate, this one included.
    ``places`` is the number of concurrent calls of this process, None: no limit.
    """

    granted: int
    rate: float | None
    wait: timedelta
    processes: int
    places: int | None = None


@value
class ProviderStanding:
    """A provider as one process sees it: circuit breaker, rate, number of delayed calls.

    ``trouble_at`` is when its circuit last opened, in seconds since 1970; None: never. ``open_since`` is when it
    stopped being closed; None: it is closed.
    """

    provider: str
    is_open: bool
    rate: float | None
    held_back: int
    trouble_at: float | None = None
    open_since: float | None = None


@value
class ProviderRate:
    """The rate of a provider as users see it: calls a second of all processes; None: no limit.

    ``is_open``: its circuit is open in the process that reported last. ``trouble`` is why it last opened.
    """

    provider: str
    rate: float | None
    ceiling: float | None
    processes: int
    is_open: bool = False
    trouble: str | None = None
    trouble_at: datetime | None = None
