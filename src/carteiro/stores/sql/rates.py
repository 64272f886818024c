"""How fast providers are called."""

from carteiro.policy.rates import Rate, fresh
from carteiro.stores.rate_columns import columns_of, rate_of
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
            await session.run("rate_put", **columns_of(record))
            return answer

        return await self._db.write(change, durable=False)

    async def _all(self) -> tuple[list[Rate], int]:
        now_us = await self._now_us()
        return [rate_of(row) for row in await self._db.fetch("rates_list")], now_us

    async def _now_us(self) -> int:
        return await self._db.now() * 1000


async def _locked(session: Session, provider: str) -> Rate:
    """The record; nobody else draws from it until the transaction ends."""
    row = await session.first("rate_lock", provider=provider)
    if row is None:
        await session.run("rate_add", **columns_of(fresh(provider)))
        row = await session.first("rate_lock", provider=provider)
    return rate_of(row)
