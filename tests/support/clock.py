"""A clock that stands still until a test moves it, in either direction."""

from datetime import UTC, datetime, timedelta

from carteiro.model import ZERO

MILLISECOND = timedelta(milliseconds=1)
_NOON_MS = 1_800_000_000_000


class StoreClock:
    """The clock of a store under test: whole milliseconds since 1970."""

    def __init__(self, now_ms: int = _NOON_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        """The current time of the store."""
        return self.now_ms

    def advance(self, by: timedelta) -> None:
        """Let time pass."""
        self.now_ms += by // MILLISECOND

    def back(self, by: timedelta) -> None:
        """Step back, as after a correction of a wrong clock."""
        self.now_ms -= by // MILLISECOND

    def at(self, offset: timedelta = ZERO) -> datetime:
        """The time at ``offset`` from now, as a datetime."""
        return datetime.fromtimestamp(0, UTC) + self.now_ms * MILLISECOND + offset


def past(length: timedelta) -> timedelta:
    """Just longer than ``length``."""
    return length + MILLISECOND
