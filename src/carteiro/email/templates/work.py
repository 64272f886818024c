"""The cost limits of templates: a number of steps for each e-mail, and for all e-mails of one request.

A step is about 20 ns of an ordinary processor. Each operation is charged before it runs, by the length of
its input. So the same template with the same variables is refused everywhere or nowhere. The time limit is
for costs that the steps do not cover.
"""

from time import thread_time

from jinja2.exceptions import TemplateRuntimeError

STEPS_AT_ONCE = 50_000  # one millisecond, short enough for the event loop
_MOST_STEPS_OF_EMAIL = 5_000_000
_MOST_STEPS_OF_REQUEST = 50_000_000
_MOST_SECONDS = 1.0  # of processor time: ten times what the steps take, for slow machines


class Work:
    """Cost of rendering one e-mail so far; used by one thread."""

    __slots__ = ("_left", "_until", "done")

    def __init__(self, most: int = _MOST_STEPS_OF_EMAIL) -> None:
        self.done = 0
        self._left = most
        self._until: float | None = None

    @property
    def is_too_much(self) -> bool:
        """True if a limit stopped it."""
        return self._left < 0

    def pay(self, steps: int) -> None:
        """Charge steps; raises `TemplateRuntimeError` if too few are left."""
        self.done += steps
        self._left -= steps
        if self.is_too_much:
            raise TemplateRuntimeError("takes too much work")
        now = thread_time()
        if self._until is None:  # not earlier: parsing has its own limits
            self._until = now + _MOST_SECONDS
        if now > self._until:
            raise TemplateRuntimeError("takes too long")

    def note(self, steps: int) -> None:
        """Count work that was limited elsewhere, to charge it to the request."""
        self.done += steps


class Allowance:
    """Steps left for all templates of one request; the last e-mail may use more than is left."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST_STEPS_OF_REQUEST

    @property
    def is_spent(self) -> bool:
        """True if nothing more may be rendered."""
        return self._left <= 0

    def take(self, steps: int) -> None:
        """Subtract the cost of an e-mail."""
        self._left -= steps
