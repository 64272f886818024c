"""The stores that processes are killed on: created empty, and removed again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redis import Redis

from end_to_end.crash.places import Place
from support.shared_servers import a_migrated_database, redis_databases, shared_redis

STORES = ("sqlite", "postgres", "redis+sqlite", "redis+postgres")


@contextmanager
def a_place(store: str, folder: Path) -> Iterator[Place]:
    """An empty store, by its name in `STORES`, in a file of this folder or on servers of the tests."""
    queue, _, ledger = store.rpartition("+")
    with ExitStack() as stack:
        file = f"sqlite:///{folder / 'post.db'}"
        url = file if ledger == "sqlite" else stack.enter_context(a_migrated_database())
        yield Place(url, str(folder), stack.enter_context(_a_queue()) if queue else "")


@contextmanager
def _a_queue() -> Iterator[str]:
    number = redis_databases.pop()
    url = f"{shared_redis().url.removesuffix('0')}{number}"
    try:
        yield url
    finally:
        with Redis.from_url(url) as client:
            client.flushdb()
        redis_databases.append(number)
