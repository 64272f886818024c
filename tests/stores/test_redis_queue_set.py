"""A configured queue: the app and doctor use it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from carteiro.app import Carteiro
from carteiro.config import load
from carteiro.errors import ConfigError, QueueElsewhere, StoreUnavailable
from carteiro.model import State, Tenant, TenantId
from carteiro.model.checkup import Level
from carteiro.stores.open import examine_queue, examine_store
from support.library import work
from support.redis_server import RedisServer, a_redis
from support.services import HOST, free_port
from support.shared_servers import shared_postgres

pytestmark = pytest.mark.servers

HELLO = {"to": "ok@sandbox.test", "subject": "Hello", "html": "<p>Hello</p>"}
PATIENCE_S = 30


@pytest.fixture(scope="module")
def running() -> Iterator[RedisServer]:
    """A server for this module alone."""
    with a_redis(settings={"maxmemory": "512mb"}) as started:
        yield started


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    """The server, empty."""
    with Redis.from_url(running.url) as client:
        client.flushall()
    return running


async def test_messages_go_through_the_configured_queue(
    server: RedisServer, tmp_path: Path
) -> None:
    """The file is the ledger, without jobs."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with Carteiro.open(store, queue=server.url) as post:
        await post.send(tenant="acme", **HELLO)
        [depth] = await post.backend.reading.depths()
        await work(post)
        states = await post.backend.reading.states()

    assert depth.unfinished == 1
    assert states == {State.SENT: 1}


async def test_messages_accepted_without_the_queue_are_put_later(tmp_path: Path) -> None:
    """The app opens and accepts; the relay next to it does the rest."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with Carteiro.open(store, queue=f"redis://{HOST}:{free_port()}/0") as post:
        await post.send(tenant="acme", **HELLO)
    with a_redis() as server:
        async with (
            Carteiro.open(store, queue=server.url) as post,
            asyncio.timeout(PATIENCE_S),
        ):
            while not any(each.unfinished for each in await post.backend.reading.depths()):
                await asyncio.sleep(0.02)
            await work(post)
            states = await post.backend.reading.states()

    assert states == {State.SENT: 1}


async def test_doctor_checks_the_queue_too(server: RedisServer, tmp_path: Path) -> None:
    """In addition to the store."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with Carteiro.open(store, queue=server.url):
        settings = load(overrides={"store": store, "queue": server.url})
        found = [*await examine_store(settings), *await examine_queue(settings)]

    assert {"store", "queue", "queue memory", "queue eviction", "queue durability"} <= {
        each.check for each in found
    }


async def test_separate_queue_needs_a_durable_store(server: RedisServer) -> None:
    """A store that ends with its process needs none."""
    with pytest.raises(ConfigError, match="queue"):
        async with Carteiro.open("memory://", queue=server.url):
            pass


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A separate, durable store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/carteiro.db"
    else:
        with shared_postgres().a_database() as url:
            yield url


async def test_opening_the_store_without_its_queue_is_refused_while_others_use_it(
    server: RedisServer, store_url: str
) -> None:
    """It would take the jobs from them; when all have ended, it is allowed."""
    async with Carteiro.open(store_url, queue=server.url) as post:
        await post.send(tenant="acme", **HELLO)
        await _is_relayed(store_url, server.url)
        with pytest.raises(QueueElsewhere, match="CARTEIRO_QUEUE"):
            async with Carteiro.open(store_url):
                pass
    async with Carteiro.open(store_url) as post:
        await work(post)
        states = await post.backend.reading.states()

    assert states == {State.SENT: 1}


async def _is_relayed(store: str, queue: str) -> None:
    """Return when a process relays, and leads."""
    settings = load(overrides={"store": store, "queue": queue})
    async with asyncio.timeout(PATIENCE_S):
        while ("worker", Level.OK) not in {
            (each.check, each.level) for each in await examine_store(settings)
        }:
            await asyncio.sleep(0.05)


async def test_one_shot_run_finds_jobs_that_the_queue_has_lost(
    server: RedisServer, store_url: str
) -> None:
    """It does not rely on a process that relays now and then."""
    async with Carteiro.open(store_url, queue=server.url) as post:
        await post.send(tenant="acme", **HELLO)
        with Redis.from_url(server.url) as client:
            client.flushall()
        states = await post.work_off()

    assert states == {State.SENT: 1}


async def test_one_shot_run_ends_when_the_queue_is_down(tmp_path: Path) -> None:
    """With an error, and without a wait."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with (
        Carteiro.open(store, queue=f"redis://{HOST}:{free_port()}/0") as post,
        asyncio.timeout(PATIENCE_S),
    ):
        await post.send(tenant="acme", **HELLO)
        with pytest.raises(StoreUnavailable):
            await post.work_off()


async def test_one_shot_run_goes_on_at_a_concurrency_limit(store_url: str) -> None:
    """A slot freed during a claim is used by the next one."""
    async with Carteiro.open(store_url) as post:
        await post.backend.tenants.define([Tenant(TenantId("acme"), cap=1)])
        for _ in range(30):
            await post.send(tenant="acme", **HELLO)
        states = await post.work_off()

    assert states == {State.SENT: 30}
