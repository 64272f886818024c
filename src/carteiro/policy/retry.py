"""Retry policies: the number of attempts and the waits between them.

Pure: ``chance`` in [0, 1) comes from the caller.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Literal, TypeAlias

from carteiro.model import MILLISECOND, ZERO, Failure, Scope, value

Charge: TypeAlias = Literal["all", "message"]
Environment: TypeAlias = Literal["development", "production"]

_MICROSECOND = timedelta(microseconds=1)
_LONGEST_MS = timedelta.max // MILLISECOND
_LARGEST_EXPONENT = 67  # one microsecond doubled that often is longer than any timedelta
_OWN_FAULTS = frozenset({Scope.MESSAGE, Scope.RECIPIENT})


@value
class RetryPolicy:
    """Retries of a message: at most ``max_attempts`` charged failures, with a wait after each.

    The waits come from ``table`` if given (the last one repeats), else ``base`` doubles up to ``cap``.
    ``charge`` says which failures count: all, or only those of the message or its recipient.
    ``is_patient``: failures that take longer to end get longer waits (`patience`).
    """

    max_attempts: int
    base: timedelta = ZERO
    cap: timedelta = timedelta.max
    jitter: float = 0.25
    table: tuple[timedelta, ...] = ()
    max_in_doubt_resends: int = 1
    charge: Charge = "all"
    is_patient: bool = False

    def delay(self, failed: int, chance: float) -> timedelta:
        """The wait after failure number ``failed``, in whole milliseconds, never negative.

        Jitter is added after the cap, to spread messages that all reached the cap. Before any charged
        failure the wait is that after the first.
        """
        wait = self._table_wait(failed) if self.table else self._doubled_wait(failed)
        spread = 1 + self.jitter * (2 * chance - 1)
        wait_ms = round(wait / MILLISECOND * spread)
        return timedelta(milliseconds=min(max(wait_ms, 0), _LONGEST_MS))

    def later_delays(self, failed: int, chance: float) -> Iterator[timedelta]:
        """The waits after further failures, as long as there would be one."""
        return (self.delay(number, chance) for number in range(failed + 1, self.max_attempts))

    def charges(self, failure: Failure) -> bool:
        """True if the failure counts against ``max_attempts``."""
        return self.charge == "all" or failure.scope in _OWN_FAULTS

    def _table_wait(self, failed: int) -> timedelta:
        return self.table[min(max(failed, 1), len(self.table)) - 1]

    def _doubled_wait(self, failed: int) -> timedelta:
        # In whole microseconds: a doubled timedelta would overflow before the cap limits it.
        exponent = min(max(failed - 1, 0), _LARGEST_EXPONENT)
        wait_us = self.base // _MICROSECOND * 2**exponent
        return timedelta(microseconds=min(wait_us, self.cap // _MICROSECOND))


PRESETS: Mapping[str, RetryPolicy] = {
    "gateway": RetryPolicy(max_attempts=5, base=timedelta(seconds=1), cap=timedelta(seconds=60)),
    "classic": RetryPolicy(max_attempts=5, base=timedelta(seconds=1), cap=timedelta(seconds=300)),
    "development": RetryPolicy(
        max_attempts=3, base=timedelta(milliseconds=500), cap=timedelta(seconds=30)
    ),
    "pipeline": RetryPolicy(
        max_attempts=5, table=tuple(timedelta(seconds=each) for each in (1, 5, 30, 120, 600))
    ),
    "transactional": RetryPolicy(
        max_attempts=4,
        jitter=0,
        table=(timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15)),
    ),
    "tickets": RetryPolicy(max_attempts=3, base=timedelta(seconds=1), cap=timedelta(seconds=30)),
}

PRESET_RULE = f"A retry preset: {', '.join(PRESETS)}, or one defined in the settings."


def default_preset(environment: Environment) -> str:
    """The preset of an environment, unless the settings name one."""
    return "gateway" if environment == "production" else "development"
