"""How fast providers are called, in memory."""

from carteiro.policy.rates import Rate, fresh
from carteiro.stores.memory.tables import Tables
from carteiro.stores.rates import Answer, Rule, StoredRates


class MemoryRates(StoredRates):
    """The `Rates` port on a plain dict."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def _changed(self, provider: str, rule: Rule[Answer]) -> Answer:
        records = self._tables.rates
        answer, records[provider] = rule(records.get(provider) or fresh(provider), self._now_us())
        return answer

    async def _all(self) -> tuple[list[Rate], int]:
        return [record for _, record in sorted(self._tables.rates.items())], self._now_us()

    def _now_us(self) -> int:
        return self._tables.now() * 1000
