"""How fast providers are called, and how they fare."""

from datetime import datetime, timedelta

from carteiro.model.basics import value


@value
class Drawn:
    """What a process may call of a provider now; ``rate`` is what all may together, None: as fast as they can.

    ``wait``: so long there is no other call to be had. ``processes`` share it, whoever drew among them.
    ``places``: so many calls it may have at once, None: any number.
    """

    granted: int
    rate: float | None
    wait: timedelta
    processes: int
    places: int | None = None


@value
class ProviderStanding:
    """What one process knows of a provider: whether it is left alone, its rate, how often calls were held back.

    ``trouble_at`` is when it was left alone last, in seconds since 1970; None: never.
    """

    provider: str
    is_open: bool
    rate: float | None
    held_back: int
    trouble_at: float | None = None


@value
class ProviderRate:
    """How fast a provider is called, as people see it: per second, by all processes together; None: no limit.

    ``is_open``: the process that spoke last leaves it alone. ``trouble`` is why it was left alone last.
    """

    provider: str
    rate: float | None
    ceiling: float | None
    processes: int
    is_open: bool = False
    trouble: str | None = None
    trouble_at: datetime | None = None
