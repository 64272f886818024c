"""Call rates of providers: reads a record, applies a rule, writes the record."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias, TypeVar

import orjson

from carteiro.model import ZERO, Drawn, ProviderRate
from carteiro.policy import rates
from carteiro.policy.rates import Rate, Stay, Trouble, fresh
from carteiro.stores.sql.session import Database, Session

Answer = TypeVar("Answer")
Rule: TypeAlias = Callable[
    [Rate, int], tuple[Answer, Rate]
]  # the record after the rule, at this microsecond


class StoredRates(ABC):
    """See `carteiro.ports.rates.Rates` for what it promises; a store says how a record is changed."""

    async def draw(self, provider: str, count: int, **asked: Any) -> Drawn:  # noqa: ANN401 - as the port has it
        """Draw up to ``count`` calls."""
        return await self._changed(
            provider, lambda record, now_us: rates.draw(record, count, now_us, **asked)
        )

    async def slow_down(self, provider: str, *, going: float) -> None:
        """Reduce the rate, as the provider throttles; without a rate yet, ``going`` calls a second were made."""
        await self._changed(provider, _silent(partial(rates.throttled, going=going)))

    async def report(self, provider: str, *, why: str | None, wait: timedelta = ZERO) -> None:
        """Report that this process opened the circuit for ``wait``, and ``why``; None: the provider answers again."""
        if why is None:
            await self._changed(provider, _silent(lambda record, _: rates.healed(record)))
        else:
            await self._changed(provider, _silent(partial(rates.left_alone, wait=wait, why=why)))

    async def show(self) -> list[ProviderRate]:
        """The rate of every provider that has a record, by name."""
        records, now_us = await self._all()
        return [rates.shown(record, now_us) for record in records]

    @abstractmethod
    async def _changed(self, provider: str, rule: Rule[Answer]) -> Answer:
        """Apply the rule to the record while nobody else changes it; losing the change in a crash is harmless."""

    @abstractmethod
    async def _all(self) -> tuple[list[Rate], int]:
        """Every record, by provider, and the store's time in microseconds."""


def _silent(rule: Callable[[Rate, int], Rate]) -> Rule[None]:
    return lambda record, now_us: (None, rule(record, now_us))


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
    """The record, locked until the transaction ends."""
    row = await session.first("rate_lock", provider=provider)
    if row is None:
        await session.run("rate_add", **_columns_of(fresh(provider)))
        row = await session.first("rate_lock", provider=provider)
    return _rate_of(row)


def _rate_of(row: Sequence[Any]) -> Rate:
    """The record from its row."""
    provider, ceiling, cut_to, peak, cut_at_us, next_us, stays, trouble = row
    present = {name: Stay(*told) for name, told in orjson.loads(stays).items()}
    opened = trouble and Trouble(*orjson.loads(trouble))
    return Rate(provider, present, ceiling, cut_to, peak, cut_at_us, next_us, opened)


def _columns_of(record: Rate) -> dict[str, object]:
    """The row of a record, by column."""
    trouble = record.trouble and orjson.dumps(tuple(record.trouble)).decode()
    stays = orjson.dumps({name: tuple(stay) for name, stay in record.stays.items()}).decode()
    return asdict(record) | {"stays": stays, "trouble": trouble}
