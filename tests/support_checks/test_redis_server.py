"""The Redis server of the tests keeps what it was told, or has lost it all, as a test wishes."""

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
    """Have it remember something."""
    with redis.Redis.from_url(server.url) as client:
        client.set("word", value)


def said(server: RedisServer) -> str | None:
    """What it remembers."""
    with redis.Redis.from_url(server.url, decode_responses=True) as client:
        word = client.get("word")
        assert word is None or isinstance(word, str)
        return word


def test_it_is_set_as_a_queue_must_be(redis_server: RedisServer) -> None:
    """Nothing is evicted, and everything is logged."""
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        assert {name: client.config_get(name)[name] for name in WISHED} == WISHED


def test_a_flush_takes_everything(redis_server: RedisServer) -> None:
    """The next test finds nothing."""
    say(redis_server, "something")

    redis_server.flush()

    assert said(redis_server) is None


@pytest.mark.parametrize("end", [RedisServer.stop, RedisServer.kill])
def test_what_was_said_is_there_again(own: RedisServer, end: Callable[[RedisServer], None]) -> None:
    """The same port and another process: whoever was connected has to connect again."""
    before = own.pid
    say(own, "kept")

    end(own)
    with pytest.raises(redis.ConnectionError):
        said(own)
    own.start()

    assert said(own) == "kept"
    assert own.pid != before


def test_it_can_come_back_with_nothing(own: RedisServer) -> None:
    """As a server does whose disk is gone."""
    say(own, "lost")

    own.kill()
    own.start(empty=True)

    assert said(own) is None


def test_it_can_come_back_with_what_was_long_ago(own: RedisServer) -> None:
    """As a server does that was restored from a copy."""
    say(own, "old")
    copy = own.back_up()
    say(own, "new")

    own.kill()
    own.restore(copy)
    own.start()

    assert said(own) == "old"
