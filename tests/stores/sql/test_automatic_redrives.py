"""Automatic redrives in SQL: what others wait for."""

from collections.abc import Awaitable, Callable
from typing import Any

from carteiro.model import AutomaticPlan, Ramp
from carteiro.stores.sql.automatic_redrives import SqlAutomaticRedrives
from support.builders import ACME, tenants_named
from support.clock import StoreClock
from support.quick_store import quick_backend
from support.recovering import COOL_DOWN, PROVIDER, lost


class _Watched:
    """A database that notes the statements of its writing transactions."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, operation: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self._inner.write(lambda session: operation(_Session(session, self.seen)))


class _Session:
    def __init__(self, inner: Any, seen: list[str]) -> None:
        self._inner, self._seen = inner, seen

    def __getattr__(self, name: str) -> Any:
        def call(statement: str, /, **parameters: object) -> Any:
            self._seen.append(statement)
            return getattr(self._inner, name)(statement, **parameters)

        return call


async def test_nobody_waits_while_the_dead_letters_of_a_tenant_are_counted() -> None:
    """There may be a million: they are counted before the transaction that starts their redrive."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        for _ in range(2):
            await lost(backend)
        clock.advance(COOL_DOWN)
        assert isinstance(backend.automatic_redrives, SqlAutomaticRedrives)
        watched: Any = _Watched(backend.automatic_redrives._db)

        redrive = await SqlAutomaticRedrives(watched).start(ACME, PROVIDER, AutomaticPlan(), Ramp())

    assert redrive is not None
    assert redrive.total == 2
    assert "redrives_add" in watched.seen
    assert "automatic_total" not in watched.seen
