"""How fast providers are called, on Postgres."""

from datetime import timedelta

from carteiro.model import Drawn, ProviderRate
from carteiro.policy import rates
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.rate_columns import columns_of, rate_of


class PostgresRates:
    """See `carteiro.ports.rates.Rates` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

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
        now_us = await self._now_us()
        async with self._db.transaction() as session:
            drawn, record = rates.draw(
                await _locked(session, provider),
                count,
                now_us,
                process=process,
                stay=stay,
                ceiling=ceiling,
                concurrency=concurrency,
                holds=holds,
            )
            await session.fetch("rate_put", *columns_of(record).values())
            return drawn

    async def slow_down(self, provider: str, *, going: float) -> None:
        """The provider throttles."""
        now_us = await self._now_us()
        async with self._db.transaction() as session:
            record = rates.throttled(await _locked(session, provider), now_us, going=going)
            await session.fetch("rate_put", *columns_of(record).values())

    async def show(self) -> list[ProviderRate]:
        """The pace of every provider that has a record, by name."""
        now_us = await self._now_us()
        return [rates.shown(rate_of(row), now_us) for row in await self._db.fetch("rates_list")]

    async def _now_us(self) -> int:
        return await self._db.now() * 1000


async def _locked(session: Session, provider: str) -> rates.Rate:
    """The record; nobody else draws from it until the transaction ends."""
    row = await session.first("rate_lock", provider)
    if row is None:
        await session.fetch("rate_add", *columns_of(rates.fresh(provider)).values())
        row = await session.first("rate_lock", provider)
    return rate_of(row[:-1])
