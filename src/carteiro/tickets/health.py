"""Whether tickets of a type fail for a reason of their own, or because what they all need is away.

Pure: seconds of a monotonic clock and ``chance`` in [0, 1) come from the caller.
"""

from collections import deque

from carteiro.policy.breaker import Breaker, Round
from carteiro.tickets.ticket import TicketId

REMEMBERED = 50  # the last outcomes that are looked at
MEMORY_S = 60.0
FEWEST_FAILED = 10  # different tickets; fewer may well be ill themselves
SHARE = 0.5


class Health:
    """What one worker knows of one type of tickets.

    An outage is when at least `SHARE` of the last outcomes are failures, of at least `FEWEST_FAILED`
    different tickets. Then no ticket of the type is started for a while, and after that one at a time,
    until one succeeds. What fails meanwhile says nothing of the ticket, and is not held against it.
    While ``is_perfect`` nothing has to be said of successes.
    """

    def __init__(self) -> None:
        self._breaker = Breaker()
        self._last: deque[tuple[float, TicketId | None]] = deque(
            maxlen=REMEMBERED
        )  # None: a success
        self.is_perfect = (
            True  # no failure is remembered; a plain attribute, since it is asked for each ticket
        )

    @property
    def is_out(self) -> bool:
        """Whether there is an outage."""
        return self._breaker.is_open

    def wait(self, now: float) -> float:
        """In how many seconds a ticket may be started; 0.0: now."""
        return self._breaker.wait(now)

    def begin(self, now: float) -> Round:
        """A ticket is started; say afterwards how it ended, and in which round it began."""
        return self._breaker.begin(now)

    def unused(self, now: float) -> None:
        """A ticket that was started came to no end here: it was taken away."""
        self._breaker.unused(now)

    def succeeded(self, began: Round, now: float) -> bool:
        """The ticket is done; return whether that ended an outage."""
        self._last.append((now, None))
        ends = self._breaker.succeeded(began)
        if ends:
            self._last.clear()
        self.is_perfect = not self.is_out and all(id is None for _, id in self._last)
        return ends

    def failed(self, began: Round, now: float, chance: float, *, id: TicketId) -> bool:
        """The ticket failed; return whether that began an outage."""
        self.is_perfect = False
        if self.is_out:
            self._breaker.failed(began, now, chance)
            return False
        self._last.append((now, id))
        if not self._is_outage(now):
            return False
        self._breaker.open(now, chance)
        return True

    def _is_outage(self, now: float) -> bool:
        recent = [id for moment, id in self._last if now - moment < MEMORY_S]
        failed = [id for id in recent if id is not None]
        return len(set(failed)) >= FEWEST_FAILED and len(failed) >= SHARE * len(recent)
