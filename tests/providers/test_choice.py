"""No process delivers mail to the sandbox that the installation sends through another provider."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.errors import ConfigError
from carteiro.model import State
from support.working import TOO_LONG

_ELSEWHERE = r"provider is not set here, but this installation sends through smtp"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The address of a store that several processes share."""
    return f"sqlite:///{tmp_path}/post.db"


@asynccontextmanager
async def opened(store: str, **settings: Any) -> AsyncIterator[Carteiro]:
    """A process of the installation, with waiting mail."""
    async with Carteiro.open(store, **settings) as post:
        await post.send(tenant="acme", to="ana@example.com", subject="Bom dia", text="Olá")
        yield post


async def works(post: Carteiro) -> None:
    """Run a worker."""
    async with asyncio.timeout(TOO_LONG):
        await post.run_worker()


async def works_off(post: Carteiro) -> None:
    """Run as ``carteiro process`` does."""
    await post.work_off()


@pytest.mark.parametrize("work", [works, works_off])
async def test_unset_provider_sends_nothing_where_another_was_set(
    store: str, work: Callable[[Carteiro], Awaitable[None]]
) -> None:
    """A process without its settings, as from cron, would mark real mail as SENT and deliver it to nobody."""
    async with opened(store, provider="smtp"):
        pass

    async with opened(store) as forgetful:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await work(forgetful)

        assert set(await forgetful.backend.reading.states()) == {State.ENQUEUED}
        assert await forgetful.backend.inbox.list() == []


@pytest.mark.parametrize("routes", ["tenant_routes", "type_routes"])
async def test_unset_provider_sends_nothing_where_a_route_leads_elsewhere(
    store: str, routes: str
) -> None:
    """The sandbox for most, a real provider for one tenant or type: a process without settings has no routes."""
    async with opened(store, provider="sandbox", **{routes: {"acme": "smtp"}}):
        pass

    async with opened(store) as forgetful:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await forgetful.work_off()


async def test_running_worker_stops_when_another_provider_is_set(store: str) -> None:
    """The sandbox was tried first, and is still running when the real provider comes."""
    async with Carteiro.open(store) as first:
        working = asyncio.create_task(works(first))
        async with Carteiro.open(store, provider="smtp"):
            with pytest.raises(ConfigError, match=_ELSEWHERE):
                await working


async def test_unset_provider_sends_to_the_sandbox_where_nothing_was_set(store: str) -> None:
    """A first trial needs no settings."""
    async with opened(store) as post:
        assert await post.work_off() == {State.SENT: 1}


async def test_sandbox_is_used_where_it_is_set(store: str) -> None:
    """An explicit setting counts; the last process to set one wins."""
    async with opened(store, provider="smtp"):
        pass
    async with opened(store, provider="sandbox") as meant:
        assert await meant.work_off() == {State.SENT: 2}
    async with opened(store) as unset:
        assert await unset.work_off() == {State.SENT: 1}


@pytest.mark.parametrize("routes", ["tenant_routes", "type_routes"])
async def test_routes_to_others_need_a_default_provider(store: str, routes: str) -> None:
    """Mail without a route would go to the sandbox by accident."""
    async with opened(store, **{routes: {"demo": "sandbox", "brasa": "smtp"}}) as post:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await post.work_off()


async def test_route_to_the_sandbox_does_not_change_the_default(store: str) -> None:
    """One tenant experiments; the mail of the others still goes through the configured provider."""
    async with opened(store, provider="smtp"):
        pass
    async with opened(store, tenant_routes={"demo": "sandbox"}) as post:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await post.work_off()
