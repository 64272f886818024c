"""What templates may cost: so many steps for each e-mail, so many for all e-mails of one request.

A step is about 20 ns of an ordinary processor. Who works pays first, by the length of what it works
on, so the same template with the same variables is refused everywhere or nowhere. The clock is there
for what a price does not foresee.
"""

from time import thread_time

from jinja2.exceptions import TemplateRuntimeError

STEPS_AT_ONCE = 50_000  # a millisecond, for which nobody need make way
_MOST_STEPS_OF_EMAIL = 5_000_000
_MOST_STEPS_OF_REQUEST = 50_000_000
_MOST_SECONDS = 1.0  # of the processor: ten times what the steps take, for machines that are slow


class Work:
    """What rendering one e-mail has cost so far; belongs to the thread that renders it."""

    __slots__ = ("_left", "_until", "done")

    def __init__(self, most: int = _MOST_STEPS_OF_EMAIL) -> None:
        self.done = 0
        self._left = most
        self._until: float | None = None

    @property
    def is_too_much(self) -> bool:
        """Whether it was stopped for what it costs."""
        return self._left < 0

    def pay(self, steps: int) -> None:
        """Take steps off what the e-mail may cost; raises `TemplateRuntimeError` if there are too few."""
        self.done += steps
        self._left -= steps
        if self.is_too_much:
            raise TemplateRuntimeError("takes too much work")
        now = thread_time()
        if self._until is None:  # only now: templates are read before, in their own time
            self._until = now + _MOST_SECONDS
        if now > self._until:
            raise TemplateRuntimeError("takes too long")

    def note(self, steps: int) -> None:
        """Count what was bounded already, for the request to pay."""
        self.done += steps


class Allowance:
    """What the templates of one request may still cost together; the last may cost more than is left."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST_STEPS_OF_REQUEST

    @property
    def is_spent(self) -> bool:
        """Whether no more is to be rendered."""
        return self._left <= 0

    def take(self, steps: int) -> None:
        """Take off what an e-mail has cost."""
        self._left -= steps
