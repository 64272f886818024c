"""The stores that applications reach by SQL, and such an application."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carteiro.ports import Backend
from support.builders import ACME, BRASA, tenants_named
from support.clock import StoreClock
from support.set_ups import Place, postgres_url
from support.table_queue import Application, an_application


@pytest.fixture
def clock() -> StoreClock:
    """A minute ahead of the database's own, which applications use: their rows are due."""
    return StoreClock(int(time.time() * 1000) + 60_000)


@pytest.fixture
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock
) -> AsyncIterator[Place]:
    """The location of a store that knows the tenants ACME and BRASA."""
    kept = Place(request.param, tmp_path, clock)
    try:
        async with kept.opened() as opened:
            await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield kept
    finally:
        kept.set_up.drops(tmp_path)


@pytest.fixture
async def backend(place: Place) -> AsyncIterator[Backend]:
    """All ports of the store."""
    async with place.opened() as opened:
        yield opened


@pytest.fixture
def acme(place: Place) -> Iterator[Application]:
    """ACME's application, with autocommit."""
    with _of(place, ACME) as made:
        yield made


@pytest.fixture
def brasa(place: Place) -> Iterator[Application]:
    """BRASA's application."""
    with _of(place, BRASA) as made:
        yield made


@contextmanager
def _of(place: Place, tenant: str) -> Iterator[Application]:
    url, _, _ = postgres_url(place.folder).partition("?")
    with an_application(url) as made:
        made.rows(f"SET carteiro.tenant = '{tenant}'")
        yield made
