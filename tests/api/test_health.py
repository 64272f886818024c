"""Health checks: what anybody may ask costs the store little."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from carteiro.stores.sqlite.store import SqliteStore
from support.http import a_client, opened


async def test_concurrent_readiness_checks_ask_the_store_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They need no key: many must not take all connections to the store. A caller that leaves stops nothing."""
    accept, asked, go_on = SqliteStore.accept, [0], asyncio.Event()

    async def slowly(self: SqliteStore, new: Sequence[Any]) -> Any:
        asked[0] += 1
        await go_on.wait()
        return await accept(self, new)

    monkeypatch.setattr(SqliteStore, "accept", slowly)
    async with opened("memory://") as post, a_client(post, key=None) as client:
        checks = [asyncio.create_task(client.get("/health/ready")) for _ in range(20)]
        async with asyncio.timeout(30):
            while not asked[0]:
                await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)  # until all of them wait
        at_once = asked[0]
        checks[0].cancel()
        go_on.set()
        answers = await asyncio.gather(*checks[1:])
        again = await client.get("/health/ready")

    assert at_once == 1
    assert {each.status_code for each in (*answers, again)} == {200}
    assert asked[0] == 2
