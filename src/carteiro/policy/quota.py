"""API limits of a tenant: messages in fixed windows of UTC, and once under an idempotency key.

Pure: ``now`` and the counts come from the store, in milliseconds since 1970.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from carteiro.model import MILLISECOND, ApiLimits, Charged, OverLimit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEY_LIFE_MS = 86_400_000  # lifetime of an idempotency key
_WINDOWS_MS = (60_000, 3_600_000, 86_400_000)  # in the order of the fields of `ApiLimits`


class QuotaCounts:
    """Messages of one tenant in the windows that contain ``now``.

    ``counted`` is what the store has: (length, start, count); a past window counts nothing. The next window
    wins over the one of ``now``: a caller that waited for the lock must not open it a second time.
    A later start comes from a clock that stepped back.
    """

    def __init__(self, now: int, counted: Iterable[tuple[int, int, int]] = ()) -> None:
        self._now = now
        self._starts = {length: now - now % length for length in _WINDOWS_MS}
        self._counts = dict.fromkeys(_WINDOWS_MS, 0)
        for length, start, count in counted:
            if 0 <= start - self._starts[length] <= length:
                self._starts[length], self._counts[length] = start, count

    def judge(self, limits: ApiLimits) -> OverLimit | None:
        """None if one more is allowed; else the full window that ends last."""
        allowed = (limits.per_minute, limits.per_hour, limits.per_day)
        full = [
            (length, limit)
            for length, limit in zip(_WINDOWS_MS, allowed, strict=True)
            if limit is not None and self._counts[length] >= limit
        ]
        if not full:
            return None
        length, limit = full[-1]  # windows are nested: none ends after a longer one
        ends_at = self._starts[length] + length
        resets_at, wait = _EPOCH + ends_at * MILLISECOND, (ends_at - self._now) * MILLISECOND
        return OverLimit(limit, 0, resets_at, wait, length * MILLISECOND)

    def charge(self, refused: int, limits: ApiLimits) -> Charged:
        """Count refused messages, up to the limits."""
        for counted in range(refused):
            over = self.judge(limits)
            if over is not None:
                return Charged(counted, over)
            self.count()
        return Charged(refused)

    def count(self) -> None:
        """Count one more message."""
        for length in _WINDOWS_MS:
            self._counts[length] += 1

    def rows(self) -> list[tuple[int, int, int]]:
        """The rows to store: (length, start, count) of each window."""
        return [(length, self._starts[length], count) for length, count in self._counts.items()]
