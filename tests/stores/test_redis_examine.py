"""Checks of a Redis server for the queue, on live servers."""

import pytest
import redis

from carteiro.errors import QueueAway, StoreError
from carteiro.model.checkup import Level
from carteiro.stores.redis import RedisOptions, examine
from carteiro.stores.redis.server import Server
from support.redis_server import a_redis
from support.services import HOST, free_port

pytestmark = pytest.mark.servers

FIT = {"maxmemory": "512mb"}


async def _found(settings: dict[str, str]) -> dict[str, Level]:
    with a_redis(settings=settings) as server:
        return {each.check: each.level async for each in examine(server.url)}


async def test_default_server_passes() -> None:
    """Without a warning."""
    found = await _found(FIT)

    assert set(found.values()) == {Level.OK}


@pytest.mark.parametrize(
    ("settings", "check", "level"),
    [
        ({"maxmemory-policy": "allkeys-lru"}, "queue eviction", Level.FAIL),
        ({"appendonly": "no"}, "queue durability", Level.FAIL),
        ({"appendfsync": "no"}, "queue durability", Level.WARN),
        ({"maxmemory": "1"}, "queue memory", Level.WARN),
        ({"maxmemory": "0"}, "queue memory", Level.WARN),
    ],
)
async def test_unfit_server_is_reported(settings: dict[str, str], check: str, level: Level) -> None:
    """Each fault alone, and no other."""
    found = await _found(FIT | settings)

    assert {name: each for name, each in found.items() if each is not Level.OK} == {check: level}


async def test_unreachable_server_is_reported() -> None:
    """With advice."""
    [finding] = [each async for each in examine(f"redis://{HOST}:{free_port()}/0")]

    assert finding.level is Level.FAIL
    assert finding.advice


async def test_wrong_password_is_reported_as_such() -> None:
    """By the check, and by a client."""
    with a_redis() as server:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("requirepass", "s3cret")
        url = server.url.replace("://", "://:wrong@")
        [finding] = [each async for each in examine(url)]
        asking = Server(url, RedisOptions())
        with pytest.raises(QueueAway) as raised:
            await asking.know()
        await asking.close()

    assert "does not let us in" in finding.told
    assert "check user and password" in finding.advice
    assert "does not let us in: check user and password" in str(raised.value)
    assert "wrong@" not in f"{finding.told}{raised.value}"


async def test_refusal_of_the_server_is_reported_in_a_sentence() -> None:
    """With the server's own text."""
    with a_redis() as server:
        with redis.Redis.from_url(server.url, decode_responses=True) as client:
            client.execute_command("ACL", "SETUSER", "ana", "on", ">s3cret", "~*", "+info", "+ping")
        asking = Server(server.url.replace("://", "://ana:s3cret@"), RedisOptions())
        with pytest.raises(StoreError, match="refused it: "):
            await asking.know()
        await asking.close()
