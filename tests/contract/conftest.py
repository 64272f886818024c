"""The stores under test, each of `support.set_ups.SET_UPS` in turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carteiro.ports import Backend, Store
from support.builders import ACME, BRASA, tenants_named
from support.clock import StoreClock
from support.set_ups import SET_UPS, Place, SetUp


def _name(set_up: SetUp) -> str:
    return set_up.name


@pytest.fixture(scope="session", params=SET_UPS, ids=_name)
def set_up(request: pytest.FixtureRequest) -> SetUp:
    """Each store set-up in turn, for tests that open stores of their own."""
    chosen: SetUp = request.param
    return chosen


@pytest.fixture
def clock() -> StoreClock:
    """The clock of the store under test."""
    return StoreClock()


@pytest.fixture
async def backend(set_up: SetUp, clock: StoreClock) -> AsyncIterator[Backend]:
    """All ports of a store that knows the tenants ACME and BRASA, and nothing else."""
    async with set_up.opened(clock) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


@pytest.fixture
def store(backend: Backend) -> Store:
    """The store port of the backend."""
    return backend.store


@pytest.fixture(params=SET_UPS, ids=_name)
async def place(request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock) -> Place:
    """Where a store is kept that knows the tenants ACME and BRASA: `place.opened()`, as often as needed."""
    return await _kept(request.param, tmp_path, clock)


@pytest.fixture(params=[each for each in SET_UPS if each.in_files], ids=_name)
async def file_place(request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock) -> Place:
    """The same, of stores that are files of ours: a server's are its own business."""
    return await _kept(request.param, tmp_path, clock)


async def _kept(set_up: SetUp, folder: Path, clock: StoreClock) -> Place:
    kept = Place(set_up, folder, clock)
    async with kept.opened() as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
    return kept
