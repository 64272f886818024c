"""A queue behind sentinels: they name its server, also after a failover."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from carteiro.errors import StoreUnavailable
from carteiro.ports.queue import Queue
from carteiro.stores.redis import RedisOptions, open_redis
from support.redis_server import RedisServer, a_redis
from support.services import HOST, Service, a_folder, program

pytestmark = pytest.mark.servers

SERVICE = "letters"
PATIENCE_S = 60


class _Sentinel(Service):
    """One sentinel, which decides alone."""

    def __init__(self, folder: Path, watched: RedisServer) -> None:
        super().__init__(folder)
        self._watched = watched

    def command(self) -> list[str]:
        """The sentinel in the foreground, with a file that it writes itself."""
        file = self.folder / "sentinel.conf"
        lines = [
            f"bind {HOST}",
            f"port {self.port}",
            f"sentinel monitor {SERVICE} {HOST} {self._watched.port} 1",
            f"sentinel down-after-milliseconds {SERVICE} 300",
            f"sentinel failover-timeout {SERVICE} 2000",
        ]
        file.write_text("\n".join(lines), encoding="utf-8")
        owner = self.folder.stat()
        os.chown(file, owner.st_uid, owner.st_gid)
        return [program("redis-server"), str(file), "--sentinel"]

    def is_ready(self) -> bool:
        """True if it answers."""
        try:
            with redis.Redis(HOST, self.port) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    def known(self) -> Sequence[object]:
        """The replicas that it knows."""
        with redis.Redis(HOST, self.port) as client:
            found: Sequence[object] = client.sentinel_slaves(SERVICE)
            return found


@contextmanager
def _sentinel(watched: RedisServer) -> Iterator[_Sentinel]:
    with a_folder("sentinel") as folder:
        running = _Sentinel(folder, watched)
        running.start()
        try:
            yield running
        finally:
            running.stop()


async def _until_it_answers(queue: Queue) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await queue.reap(limit=1)
            except StoreUnavailable:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.timeout(180)
async def test_promoted_server_is_found_and_is_another_queue() -> None:
    """Nothing is handed out before it is founded again."""
    with a_redis() as primary, a_redis() as replica, _sentinel(primary) as sentinel:
        with redis.Redis(HOST, replica.port) as client:
            client.replicaof(HOST, primary.port)
            async with asyncio.timeout(PATIENCE_S):
                while not sentinel.known():
                    await asyncio.sleep(0.05)
        address = f"redis+sentinel://{HOST}:{sentinel.port}/{SERVICE}"
        async with open_redis(address, RedisOptions(patience=timedelta(seconds=3))) as half:
            await half.desk.completed(await half.desk.founded())
            was_complete = await half.desk.is_complete()
            primary.kill()
            await _until_it_answers(half.queue)
            is_complete = await half.desk.is_complete()

    assert was_complete
    assert not is_complete


async def test_silent_sentinel_is_skipped() -> None:
    """The next one is asked, long before a caller gives up."""

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    with a_redis() as primary, _sentinel(primary) as sentinel:
        async with await asyncio.start_server(say_nothing, HOST) as silent:
            port = silent.sockets[0].getsockname()[1]
            places = f"{HOST}:{port},{HOST}:{sentinel.port}"
            address = f"redis+sentinel://{places}/{SERVICE}"
            async with open_redis(address, RedisOptions(patience=timedelta(seconds=20))) as half:
                ready = await half.queue.reap(limit=1)

    assert ready == 0
