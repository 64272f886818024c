"""How fast providers are called, in memory."""

from datetime import timedelta

from carteiro.model import Drawn, ProviderRate
from carteiro.policy import rates
from carteiro.stores.memory.tables import Tables


class MemoryRates:
    """The `Rates` port on a plain dict."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def draw(  # noqa: PLR0913 - as the port has it
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
        """Draw up to ``count`` calls."""
        drawn, self._tables.rates[provider] = rates.draw(
            self._found(provider),
            count,
            self._now_us(),
            process=process,
            stay=stay,
            ceiling=ceiling,
            concurrency=concurrency,
            holds=holds,
        )
        return drawn

    async def slow_down(self, provider: str, *, going: float) -> None:
        """The provider throttles."""
        slower = rates.throttled(self._found(provider), self._now_us(), going=going)
        self._tables.rates[provider] = slower

    async def show(self) -> list[ProviderRate]:
        """The pace of every provider that has a record, by name."""
        found = sorted(self._tables.rates.items())
        return [rates.shown(record, self._now_us()) for _, record in found]

    def _found(self, provider: str) -> rates.Rate:
        return self._tables.rates.get(provider) or rates.fresh(provider)

    def _now_us(self) -> int:
        return self._tables.now() * 1000
