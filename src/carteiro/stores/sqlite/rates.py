"""How fast providers are called, on SQLite."""

import sqlite3
from collections.abc import Callable

from carteiro.policy.rates import Rate, fresh
from carteiro.stores.rate_columns import columns_of, rate_of
from carteiro.stores.rates import Answer, Rule, StoredRates
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import run
from carteiro.stores.sqlite.writer import Writer


class SqliteRates(StoredRates):
    """The `Rates` port on a table of them."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def _changed(self, provider: str, rule: Rule[Answer]) -> Answer:
        def change(db: sqlite3.Connection) -> Answer:
            row = run(db, "rate_get", provider=provider).fetchone()
            before = fresh(provider) if row is None else rate_of(row)
            answer, record = rule(before, self._clock() * 1000)
            run(db, "rate_put", **columns_of(record))
            return answer

        return await self._writer.do(change, durable=False)

    async def _all(self) -> tuple[list[Rate], int]:
        now_us = self._clock() * 1000
        rows = await self._reader.ask(lambda db: run(db, "rates_list").fetchall())
        return [rate_of(row) for row in rows], now_us
