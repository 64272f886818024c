"""A circuit breaker for each type of tickets: if most cannot reach what they need, no more are started.

Pure: seconds of a monotonic clock and ``chance`` in [0, 1) come from the caller.
"""

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from carteiro.config import TicketSettings
from carteiro.policy.breaker import Breaker, Round
from carteiro.tickets.ticket import TicketId

REMEMBERED = 50  # the last outcomes that are looked at

_Outcome: TypeAlias = tuple[float, TicketId | None]  # None: a success


class TypeHealth:
    """The circuit breaker of one type of tickets in one worker.

    It pauses when enough of its tickets could not reach something. Then none is started for a while, and after
    that one at a time, until one succeeds or the pause has lasted too long: after that it does not pause
    again before a ticket has succeeded.
    """

    def __init__(self, settings: TicketSettings) -> None:
        self._settings = settings
        self.breaker = Breaker()
        self._last: deque[_Outcome] = deque(maxlen=REMEMBERED)
        self._failures = 0  # that are remembered, at most
        self._has_given_up = False
        # Plain attributes, since they are asked for each ticket. Perfect: no failure is remembered, and nothing
        # has to be said of successes.
        self.is_perfect, self.is_paused = True, False

    def succeeded(self, rounds: Sequence[Round | None], now: float) -> bool:
        """Tickets are done, with the round of each that was a trial; return whether that ended a pause."""
        self._last.extend([(now, None)] * min(len(rounds), REMEMBERED))
        if len(rounds) >= REMEMBERED:
            self._failures = 0
        ends = self.is_paused and any(
            self.breaker.succeeded(each) for each in rounds if each is not None
        )
        if ends:
            self._last.clear()
        self._has_given_up = False
        self.is_paused = self.breaker.is_open
        # Not exact: a type that remembers only successes may count as imperfect. To look at all would cost more.
        self.is_perfect = not self.is_paused and (ends or len(rounds) >= REMEMBERED)
        return ends

    def failed(self, began: Round | None, now: float, chance: float, *, id: TicketId) -> bool:
        """The ticket could not reach something; return whether that began a pause."""
        if not self._settings.pause:
            return False
        self.is_perfect = False
        if self.is_paused:
            if began is not None:
                self.breaker.failed(began, now, chance)
            return False
        self._last.append((now, id))
        self._failures += 1
        if self._has_given_up or not self._is_outage(now):
            return False
        self.breaker.open(now, chance)
        self.is_paused = True
        return True

    def give_up(self) -> None:
        """The pause has lasted too long: go on, whatever comes of it."""
        self.breaker = Breaker()
        self.is_paused = False
        self._last.clear()
        self._has_given_up = True

    def _is_outage(self, now: float) -> bool:
        asked, within_s = self._settings, self._settings.pause_within.total_seconds()
        if self._failures < asked.pause_tickets:
            return False
        recent = [id for moment, id in self._last if now - moment < within_s]
        failed = [id for id in recent if id is not None]
        is_enough = len(failed) >= asked.pause_share * len(recent)
        return is_enough and len(set(failed)) >= asked.pause_tickets
