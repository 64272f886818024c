"""How fast providers are called, on SQLite."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta

from carteiro.model import Drawn, ProviderRate
from carteiro.policy import rates
from carteiro.stores.rate_columns import columns_of, rate_of
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteRates:
    """See `carteiro.ports.rates.Rates` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

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

        def draw(db: sqlite3.Connection) -> Drawn:
            drawn, record = rates.draw(
                _found(db, provider),
                count,
                self._clock() * 1000,
                process=process,
                stay=stay,
                ceiling=ceiling,
                concurrency=concurrency,
                holds=holds,
            )
            run(db, "rate_put", **columns_of(record))
            return drawn

        return await self._writer.do(draw, durable=False)

    async def slow_down(self, provider: str, *, going: float) -> None:
        """The provider throttles."""

        def slow_down(db: sqlite3.Connection) -> None:
            record = rates.throttled(_found(db, provider), self._clock() * 1000, going=going)
            run(db, "rate_put", **columns_of(record))

        await self._writer.do(slow_down, durable=False)

    async def show(self) -> list[ProviderRate]:
        """The pace of every provider that has a record, by name."""
        now_us = self._clock() * 1000
        rows = await self._reader.ask(lambda db: run(db, "rates_list").fetchall())
        return [rates.shown(rate_of(row), now_us) for row in rows]


def _found(db: sqlite3.Connection, provider: str) -> rates.Rate:
    row = run(db, "rate_get", provider=provider).fetchone()
    return rates.fresh(provider) if row is None else rate_of(row)
