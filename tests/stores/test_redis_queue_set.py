"""A queue that the settings name: the post office and its doctor use it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from carteiro.app import examine_store
from carteiro.config import load
from carteiro.errors import ConfigError
from carteiro.model import State
from carteiro.post import Carteiro
from support.library import work
from support.redis_server import RedisServer, a_redis
from support.services import HOST, free_port

HELLO = {"to": "ok@sandbox.test", "subject": "Hello", "html": "<p>Hello</p>"}
PATIENCE_S = 30


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server of this module's own."""
    with a_redis(settings={"maxmemory": "512mb"}) as running:
        yield running


async def test_messages_go_through_the_queue_that_is_set(
    server: RedisServer, tmp_path: Path
) -> None:
    """The file has the truth, and no jobs."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with Carteiro.open(store, queue=server.url) as post:
        await post.send(tenant="acme", **HELLO)
        [depth] = await post.backend.reading.depths()
        await work(post)
        states = await post.backend.reading.states()

    assert depth.unfinished == 1
    assert states == {State.SENT: 1}


async def test_what_came_in_without_the_queue_is_put_when_it_is_there(tmp_path: Path) -> None:
    """The office opens and accepts; the relay beside it does the rest."""
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


async def test_the_doctor_looks_at_the_queue_too(server: RedisServer, tmp_path: Path) -> None:
    """Beside the store."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with Carteiro.open(store, queue=server.url):
        found = await examine_store(load(overrides={"store": store, "queue": server.url}))

    assert {"store", "queue", "queue memory", "queue eviction", "queue durability"} <= {
        each.check for each in found
    }


async def test_a_queue_stands_beside_a_store_that_lasts(server: RedisServer) -> None:
    """What lives as long as its process needs none."""
    with pytest.raises(ConfigError, match="queue"):
        async with Carteiro.open("memory://", queue=server.url):
            pass
