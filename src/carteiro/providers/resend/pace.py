"""The rate limit of Resend, as its answers report it.

It is the limit of a team, not of a process: others may use it up, so an answer that reports less
than was counted here is right.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from carteiro.model import ZERO

_NUMBER = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,6})?", re.ASCII)
_LONGEST_S = 60.0  # after a longer wait, it is asked again by then
_LONGEST_ASKED = timedelta(days=1)  # of a message: a day's quota is new by then
_WINDOW = 1.0  # seconds; limits are per second, and answers report how much is left


class Pace:
    """The calls left in the window of the last answers; times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._limit: float | None = None  # None: unknown
        self._left = 0.0
        self._ends_at = 0.0

    def take(self, now: float) -> float:
        """Take one of the calls that are left: 0.0, or in how many seconds to ask again."""
        if now >= self._ends_at:
            if self._limit is None:
                return 0.0
            self._left = self._limit
            self._ends_at = now + _WINDOW
        if self._left < 1:
            return self._ends_at - now
        self._left -= 1
        return 0.0

    def heard(self, headers: Mapping[str, str], status: int, now: float) -> None:
        """Learn from an answer."""
        limit, left, reset = (
            _number(headers, f"ratelimit-{name}") for name in ("limit", "remaining", "reset")
        )
        if limit is not None and left is not None and reset is not None:
            first = self._limit is None
            self._limit = max(1.0, limit)
            self._left = left if first else min(self._left, left)
            self._ends_at = max(self._ends_at, now + min(reset, _LONGEST_S))
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self._left = 0.0
            asked = asked_wait(headers).total_seconds()
            self._ends_at = max(self._ends_at, now + min(asked, _LONGEST_S))


def asked_wait(headers: Mapping[str, str]) -> timedelta:
    """The wait that an answer asks for: seconds or a date, else until its limit is reset."""
    given = headers.get("retry-after", "")
    seconds = _number(headers, "retry-after")
    if seconds is None and given:
        return min(_until(given), _LONGEST_ASKED)
    if seconds is None:
        seconds = _number(headers, "ratelimit-reset") or 0.0
    return min(timedelta(seconds=seconds), _LONGEST_ASKED)


def _until(date: str) -> timedelta:
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return ZERO
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(ZERO, aware - datetime.now(UTC))


def _number(headers: Mapping[str, str], name: str) -> float | None:
    given = headers.get(name, "").strip()
    return float(given) if _NUMBER.fullmatch(given) else None
