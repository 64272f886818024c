"""Call rates of the providers, shared by all processes."""

from datetime import timedelta
from typing import Protocol

from carteiro.model import ZERO, Drawn, ProviderRate


class Rates(Protocol):
    """The shared call rate of each provider. Data lost in a crash is measured anew.

    Promises, one module each in ``tests/contract/rates``:

    paced     The draws of all processes together stay within the rate, at most one second ahead.
    adaptive  A throttling provider is called at half the rate by all processes, halved at most once a second;
              then the rate recovers step by step.
    shared    A process counts from its draw until its stay ends or it leaves; none draws more than its share
              of one second at once.
    placed    The concurrent calls of all processes stay within the limit; a process that comes when all places
              are taken waits until one is free.
    reported  The last problem of a provider, and whether its circuit is open, are visible to all processes.
    steady    A clock that steps back delays nothing for long and removes no limit.
    """

    async def draw(  # noqa: PLR0913 - all facts of a draw
        self,
        provider: str,
        count: int,
        *,
        process: str,
        stay: timedelta,
        ceiling: float | None = None,
        concurrency: int = 0,
        holds: int = 0,
    ) -> Drawn:
        """Draw up to ``count`` calls; ``process`` counts among the sharing processes for its ``stay``, zero: it leaves.

        ``ceiling``: calls a second as this process knows it; infinite: no limit; None: as others know it.
        ``concurrency``: concurrent calls of all processes, 0: no limit. ``holds``: the places that this
        process has until the answer, which may assign fewer.
        """

    async def slow_down(self, provider: str, *, going: float) -> None:
        """Reduce the rate, as the provider throttles; without a rate yet, ``going`` calls a second were made."""

    async def report(self, provider: str, *, why: str | None, wait: timedelta = ZERO) -> None:
        """Report that this process opened the circuit for ``wait``, and ``why``; None: the provider answers again."""

    async def show(self) -> list[ProviderRate]:
        """The rate of every provider that has a record, by name."""
