"""The rate limits of providers in a plain dict, for tests in which time jumps: they cannot wait for a disk."""

from collections.abc import Callable

from carteiro.policy.rates import Rate, fresh
from carteiro.stores.sql.rates import Answer, Rule, StoredRates


class DictRates(StoredRates):
    """The `Rates` port; ``clock`` counts milliseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._records: dict[str, Rate] = {}

    async def _changed(self, provider: str, rule: Rule[Answer]) -> Answer:
        record = self._records.get(provider) or fresh(provider)
        answer, self._records[provider] = rule(record, self._clock() * 1000)
        return answer

    async def _all(self) -> tuple[list[Rate], int]:
        return [record for _, record in sorted(self._records.items())], self._clock() * 1000
