"""A real Redis server, run by the tests: as durable as a queue in production."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import redis

from support.services import HOST, Service, a_folder, as_owner, program

_SETTINGS = {
    "bind": HOST,
    "appendonly": "yes",
    "appendfsync": "everysec",
    "maxmemory-policy": "noeviction",
    "save": "",
}


class RedisServer(Service):
    """The server, and copies of its data."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(folder)
        self._settings = _SETTINGS | dict(settings or {})

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://{HOST}:{self.port}/0"

    def command(self) -> list[str]:
        """The server in the foreground."""
        settings = self._settings | {"port": str(self.port), "dir": str(self.folder)}
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return [program("redis-server"), *options]

    def is_ready(self) -> bool:
        """True if it answers: first it reads its data."""
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            return False

    def start(self, *, empty: bool = False) -> None:
        """Start it, with its data or empty."""
        if empty:
            shutil.rmtree(self._kept)
        super().start()

    def back_up(self) -> Path:
        """Copy its current data."""
        copy = self.folder / f"backup-{uuid4().hex}"
        self._copy(self._kept, copy)
        return copy

    def restore(self, copy: Path) -> None:
        """Replace its data by a copy; it must not be running."""
        shutil.rmtree(self._kept)
        self._copy(copy, self._kept)

    def flush(self) -> None:
        """Delete all its data."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    @property
    def _kept(self) -> Path:
        return self.folder / "appendonlydir"

    def _copy(self, source: Path, target: Path) -> None:
        # Not by shutil: the copy must belong to the server.
        subprocess.run(["cp", "-R", source, target], check=True, **as_owner(self.folder))


@contextmanager
def a_redis(*, settings: Mapping[str, str] | None = None) -> Iterator[RedisServer]:
    """A running server; without the program the tests are skipped, in CI they fail."""
    program("redis-server")
    with a_folder("redis") as folder:
        server = RedisServer(folder, settings=settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
