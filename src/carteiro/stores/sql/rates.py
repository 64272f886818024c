"""How fast providers are called."""

from collections.abc import Sequence
from typing import Any

import orjson

from carteiro.policy.rates import Rate, Stay, Trouble, fresh
from carteiro.stores.rates import Answer, Rule, StoredRates
from carteiro.stores.sql.session import Database, Session


class SqlRates(StoredRates):
    """The `Rates` port on a table of them."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def _changed(self, provider: str, rule: Rule[Answer]) -> Answer:
        now_us = await self._now_us()

        async def change(session: Session) -> Answer:
            answer, record = rule(await _locked(session, provider), now_us)
            await session.run("rate_put", **_columns_of(record))
            return answer

        return await self._db.write(change, durable=False)

    async def _all(self) -> tuple[list[Rate], int]:
        now_us = await self._now_us()
        return [_rate_of(row) for row in await self._db.fetch("rates_list")], now_us

    async def _now_us(self) -> int:
        return await self._db.now() * 1000


async def _locked(session: Session, provider: str) -> Rate:
    """The record; nobody else draws from it until the transaction ends."""
    row = await session.first("rate_lock", provider=provider)
    if row is None:
        await session.run("rate_add", **_columns_of(fresh(provider)))
        row = await session.first("rate_lock", provider=provider)
    return _rate_of(row)


def _rate_of(row: Sequence[Any]) -> Rate:
    """The record in a row."""
    provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble = row
    return Rate(
        provider=provider,
        ceiling=ceiling,
        cut_to=cut_to,
        peak=peak,
        cut_at_us=cut_at_us,
        next_us=next_us,
        stays={name: Stay(*told) for name, told in orjson.loads(stays).items()},
        trouble=None if trouble is None else Trouble(*orjson.loads(trouble)),
    )


def _columns_of(record: Rate) -> dict[str, object]:
    """The row of a record, by column."""
    trouble = None if record.trouble is None else orjson.dumps(tuple(record.trouble)).decode()
    return {
        "provider": record.provider,
        "ceiling": record.ceiling,
        "cut_to": record.cut_to,
        "peak": record.peak,
        "cut_at_us": record.cut_at_us,
        "next_us": record.next_us,
        "stays": orjson.dumps({name: tuple(stay) for name, stay in record.stays.items()}).decode(),
        "trouble": trouble,
    }
