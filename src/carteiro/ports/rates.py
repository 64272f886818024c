"""How fast providers are called, by all processes together."""

from datetime import timedelta
from typing import Protocol

from carteiro.model import ZERO, Drawn, ProviderRate


class Rates(Protocol):
    """The shared pace of each provider. What is lost of it in a crash is found again by calling.

    Promises, one module each in ``tests/contract/rates``:

    paced     What all processes draw together stays within the rate, a second's worth ahead at most.
    adaptive  A provider that throttles is called half as fast by all, once a second at most, and bit by bit
              as fast as before.
    shared    A process counts from its draw until its stay ends, or it leaves; none draws more than its share
              of a second's worth at once.
    placed    Calls at once, of all processes together, stay within the concurrency; whoever comes when all places
              are taken has none until one is free.
    told      What trouble a provider had last is shown to all, and whether it is left alone for it.
    steady    A clock that steps back delays nothing for long and lifts no limit.
    """

    async def draw(  # noqa: PLR0913 - who draws, and what it knows
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
        """Draw up to ``count`` calls; ``process`` counts among those that share for its ``stay``, zero: no more.

        ``ceiling``: calls a second as this process knows them; infinite: there is none; None: as others know.
        ``concurrency``: how many calls all may have at once, 0: any number; it ``holds`` so many places of them
        until it has the answer, which may be fewer.
        """
        ...

    async def slow_down(self, provider: str, *, going: float) -> None:
        """The provider throttles; ``going`` calls a second were made, where no rate says how many."""
        ...

    async def report(self, provider: str, *, why: str | None, wait: timedelta = ZERO) -> None:
        """A process leaves the provider alone for so long, and ``why``; None: it answers again."""
        ...

    async def show(self) -> list[ProviderRate]:
        """The pace of every provider that has a record, by name."""
        ...
