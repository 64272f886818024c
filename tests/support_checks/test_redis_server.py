"""The Redis server of the tests keeps its data, or loses it all on demand."""

from collections.abc import Callable, Iterator

import pytest
import redis

from support.redis_server import RedisServer, a_redis

WISHED = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}


@pytest.fixture
def own() -> Iterator[RedisServer]:
    """A server that a test may stop and kill."""
    with a_redis() as server:
        yield server


def say(server: RedisServer, value: str) -> None:
    """Store a value."""
    with redis.Redis.from_url(server.url) as client:
        client.set("word", value)


def said(server: RedisServer) -> str | None:
    """The stored value."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        word = client.get("word")
        assert word is None or isinstance(word, str)
        return word


def test_server_is_configured_as_a_queue_needs_it(redis_server: RedisServer) -> None:
    """No eviction, and an append-only log."""
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        assert {name: client.config_get(name)[name] for name in WISHED} == WISHED


def test_flush_deletes_everything(redis_server: RedisServer) -> None:
    say(redis_server, "something")

    redis_server.flush()

    assert said(redis_server) is None


@pytest.mark.parametrize("end", [RedisServer.stop, RedisServer.kill])
def test_data_survives_a_restart(own: RedisServer, end: Callable[[RedisServer], None]) -> None:
    """The same port and another process: clients have to reconnect."""
    before = own.pid
    say(own, "kept")

    end(own)
    with pytest.raises(redis.ConnectionError):
        said(own)
    own.start()

    assert said(own) == "kept"
    assert own.pid != before


def test_server_can_restart_empty(own: RedisServer) -> None:
    """As after the loss of its disk."""
    say(own, "lost")

    own.kill()
    own.start(empty=True)

    assert said(own) is None


def test_server_can_restart_with_old_data(own: RedisServer) -> None:
    """As after a restore from a backup."""
    say(own, "old")
    copy = own.back_up()
    say(own, "new")

    own.kill()
    own.restore(copy)
    own.start()

    assert said(own) == "old"
