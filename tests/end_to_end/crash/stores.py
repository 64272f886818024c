"""The stores that processes are killed on: created empty, and removed again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redis import Redis

from carteiro.stores.postgres import migrate
from end_to_end.crash.places import Place
from support.shared_servers import redis_databases, shared_postgres, shared_redis

STORES = ("sqlite", "postgres", "redis+sqlite", "redis+postgres")


@contextmanager
def a_place(store: str, folder: Path) -> Iterator[Place]:
    """An empty store, by its name in `STORES`, in a file of this folder or on servers of the tests."""
    queue, _, ledger = store.rpartition("+")
    with ExitStack() as stack:
        if ledger == "sqlite":
            url = f"sqlite:///{folder / 'post.db'}"
        else:
            url = stack.enter_context(shared_postgres().a_database(migrate))
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
