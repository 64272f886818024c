"""The stores under test, each of `support.set_ups.SET_UPS` in turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from carteiro.ports import Backend, Store
from support.builders import ACME, BRASA, tenants_named
from support.clock import StoreClock
from support.set_ups import MODEL, SET_UPS, Place, SetUp

# Ports that a pair has of its ledger, and modules whose promise the ledger alone keeps: the few calls in them that
# also reach the queue have modules of their own. A folder, or a folder and a promise.
_OF_THE_LEDGER = {
    "alerts/bounded",
    "alerts/delivered",
    "alerts/moved",
    "alerts/silenced",
    "alerts/announced",
    "audit/harmless",
    "audit/kept",
    "audit/listed",
    "automatic_redrives/fair",
    "automatic_redrives/resumed",
    "dead_letters/listed",
    "failures/bounded",
    "failures/moved",
    "inbox",
    "keys",
    "marks",
    "rates",
    "reading/faithful_labels",
    "reading/isolated",
    "reading/isolated_cursors",
    "reading/listed",
    "recipients/listed",
    "redrives/bounded",
    "reports",
    "sign_ins",
    "suppressions/counted",
    "suppressions/faithful",
    "suppressions/few",
    "suppressions/listed",
    "templates",
    "tenants/claimed",
    "tenants/listed",
    "upkeep/led",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs on every store that has something of its own to show by it."""
    for fixture in ("set_up", "place", "file_place"):
        if fixture in metafunc.fixturenames:
            file = Path(str(metafunc.module.__file__))
            chosen = _set_ups(file.parent.name, file.stem.removeprefix("test_"), fixture)
            parameters = [_parameter(each) for each in chosen]
            metafunc.parametrize(fixture, parameters, indirect=True)


def _set_ups(folder: str, promise: str, fixture: str) -> list[SetUp]:
    alone = bool({folder, f"{folder}/{promise}"} & _OF_THE_LEDGER)
    # The model keeps the promises of the path, too: stores are compared with it.
    every = [MODEL, *SET_UPS] if (folder, fixture) == ("store", "set_up") else SET_UPS
    return [
        each
        for each in every
        if (each.in_files or fixture != "file_place")
        and (each.by_sql or folder != "table_queue")
        and not (each.is_pair and alone)
    ]


def _parameter(set_up: SetUp) -> object:
    marks = [pytest.mark.servers] if set_up.on_servers else []
    return pytest.param(set_up, id=set_up.name, marks=marks)


@pytest.fixture(scope="session")
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


@pytest.fixture
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock
) -> AsyncIterator[Place]:
    """A place for a store with the tenants ACME and BRASA; `place.opened()` opens it, as often as needed."""
    async with _kept(request.param, tmp_path, clock) as kept:
        yield kept


@pytest.fixture
async def file_place(
    request: pytest.FixtureRequest, tmp_path: Path, clock: StoreClock
) -> AsyncIterator[Place]:
    """The same, only of stores in our own files: a server manages its own."""
    async with _kept(request.param, tmp_path, clock) as kept:
        yield kept


@asynccontextmanager
async def _kept(set_up: SetUp, folder: Path, clock: StoreClock) -> AsyncIterator[Place]:
    kept = Place(set_up, folder, clock)
    try:
        async with kept.opened() as opened:
            await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield kept
    finally:
        set_up.drops(folder)
