"""How fast providers are called, the same in every store: a record is read, a rule applied, and it is written again."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeAlias, TypeVar

from carteiro.model import ZERO, Drawn, ProviderRate
from carteiro.policy import rates
from carteiro.policy.rates import Rate

Answer = TypeVar("Answer")
Rule: TypeAlias = Callable[[Rate, int], tuple[Answer, Rate]]  # what it becomes, at this microsecond


class StoredRates(ABC):
    """See `carteiro.ports.rates.Rates` for what it promises; a store says how a record is changed."""

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

        def rule(record: Rate, now_us: int) -> tuple[Drawn, Rate]:
            return rates.draw(
                record,
                count,
                now_us,
                process=process,
                stay=stay,
                ceiling=ceiling,
                concurrency=concurrency,
                holds=holds,
            )

        return await self._changed(provider, rule)

    async def slow_down(self, provider: str, *, going: float) -> None:
        """The provider throttles."""
        await self._changed(provider, _silent(partial(rates.throttled, going=going)))

    async def report(self, provider: str, *, why: str | None, wait: timedelta = ZERO) -> None:
        """A process leaves the provider alone, or it answers again."""
        if why is None:
            await self._changed(provider, _silent(lambda record, _: rates.healed(record)))
        else:
            await self._changed(provider, _silent(partial(rates.left_alone, wait=wait, why=why)))

    async def show(self) -> list[ProviderRate]:
        """The pace of every provider that has a record, by name."""
        records, now_us = await self._all()
        return [rates.shown(record, now_us) for record in records]

    @abstractmethod
    async def _changed(self, provider: str, rule: Rule[Answer]) -> Answer:
        """Apply the rule to the record, as nobody else changes it; what is lost of it in a crash is harmless."""

    @abstractmethod
    async def _all(self) -> tuple[list[Rate], int]:
        """Every record, by provider, and the store's now in microseconds."""


def _silent(rule: Callable[[Rate, int], Rate]) -> Rule[None]:
    return lambda record, now_us: (None, rule(record, now_us))
