"""The providers that the contract suite runs on: one line each."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from carteiro.ports import Backend, Inbox, Provider
from carteiro.providers.noop import NoopProvider
from carteiro.providers.sandbox import SandboxProvider
from carteiro.stores.memory import open_memory


@dataclass(frozen=True)
class ProviderSetUp:
    """A provider under test, and where what it delivers can be seen."""

    name: str
    opens: Callable[[Inbox], Provider]


def _noop(_inbox: Inbox) -> Provider:
    return NoopProvider()


SET_UPS = (ProviderSetUp("sandbox", SandboxProvider), ProviderSetUp("noop", _noop))


@pytest.fixture
async def world() -> AsyncIterator[Backend]:
    async with open_memory() as backend:
        yield backend


@pytest.fixture(params=SET_UPS, ids=lambda set_up: set_up.name)
def provider(request: pytest.FixtureRequest, world: Backend) -> Provider:
    chosen: ProviderSetUp = request.param
    return chosen.opens(world.inbox)
