"""Failed attempts to sign in, within a minute, in this process."""

import time
from collections.abc import Callable, Hashable
from datetime import timedelta

from carteiro.api.refusal import too_fast

MOST_OF_ONE = 10
MOST_OF_ALL = 300
_WINDOW_S = 60.0


class Attempts:
    """Counts failures for each address and for all together.

    When all together have too many, an address that has not failed yet may still try once: nobody can lock out
    others by failing, from however many addresses.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._failed: dict[Hashable, int] = {}
        self._all = 0

    def check(self, who: Hashable) -> None:
        """Raise a `Refusal` if this address has failed too often."""
        now = self._clock()
        if now - self._since >= _WINDOW_S:
            self._since, self._failed, self._all = now, {}, 0
        most = MOST_OF_ONE if self._all < MOST_OF_ALL else 1
        if self._failed.get(who, 0) >= most:
            wait = timedelta(seconds=self._since + _WINDOW_S - now)
            raise too_fast(f"{MOST_OF_ONE} attempts to sign in a minute", wait)

    def failed(self, who: Hashable) -> None:
        """Count a failure."""
        self._all += 1
        self._failed[who] = self._failed.get(who, 0) + 1
