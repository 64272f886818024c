"""The console as `carteiro api` serves it: each page a hundred times, then 200 pages that are open at once."""

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
from uuid_utils import uuid7

from carteiro import Carteiro
from carteiro.api.access_keys import hash_key
from carteiro.model import EMAIL, DeadFilter, MessageId, NewMessage, Ramp, Role, TenantId
from carteiro.model.redrives import Redrive
from figures import say
from ours.operations import fill as fill_figures
from ours.operations import fill_groups
from ours.redrives import fill as fill_letters
from ours.shared import opened, run
from processes import cpu_seconds, ended

_TOKEN = f"ca_{uuid7()}"
_ROUNDS = 100
_VIEWERS = 200
_WATCHED_S = 20.0
_NEWS_S = 2.0
_PATIENCE_S = 30.0
_LIST = 1000
_FIRST = 10_000_000  # the number of a message, above those that were accepted
_FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')
_PAGES = (
    *("?range=1h", "?range=24h", "?range=7d", "?range=30d", "audit"),
    *("dead-letters", "dead-letters?tenant=tenant-7", "dead-letters/list"),
    *("dead-letters/list?tenant=tenant-7", "dead-letters/list?group=group-7"),
    *("dead-letters/list?after=2000-01-01T00:00", "redrives"),
)


async def _fill(post: Carteiro, folder: Path, asked: argparse.Namespace) -> str:
    """Everything that pages show; a redrive to watch."""
    await fill_figures(post, asked.tenants, failed=1)
    await fill_groups(post)
    tenants = [TenantId(f"tenant-{each}") for each in range(asked.tenants)]
    for first in range(0, len(tenants), _LIST):
        await post.backend.tenants.ensure(tenants[first : first + _LIST])
        await post.backend.store.accept([_waiting(each) for each in tenants[first : first + _LIST]])
    say("ours: tenants have jobs")
    await fill_letters(
        folder, asked.letters, messages=asked.messages, tenants=asked.tenants, first=_FIRST
    )
    say("ours: messages and dead letters are there")
    await post.backend.keys.add(
        None, key_hash=hash_key(_TOKEN), hint="ca_", name="bench", role=Role.ADMIN
    )
    wanted = DeadFilter(tenant=TenantId("tenant-7"))
    made = await post.backend.redrives.start(wanted, by="bench", ramp=Ramp(), total=10)
    assert isinstance(made, Redrive)
    return made.id


def _waiting(tenant: TenantId) -> NewMessage:
    identity = MessageId(str(uuid7()))
    return NewMessage(identity, tenant, EMAIL, "{}", "bench", timedelta(days=1), to="a@example.com")


@asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[tuple[str, int]]:
    """`carteiro api` on this store; its address and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = os.environ.get("BENCH_STORE", f"sqlite:///{folder}/carteiro.db").format(name=folder.name)
    command = [sys.executable, "-m", "carteiro", "api", "--port", str(port)]
    environ = os.environ | {"CARTEIRO_STORE": url, "CARTEIRO_LOG_LEVEL": "error"}
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        try:
            await _answers(port)
            yield f"http://127.0.0.1:{port}/console/", child.pid
        finally:
            child.terminate()
            ended(child)


async def _answers(port: int) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return


@asynccontextmanager
async def _signed_in(address: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=_PATIENCE_S) as client:
        found = _FORM_TOKEN.search((await client.get("sign-in")).text)
        assert found
        origin = address.removesuffix("/console/")
        fields = {"form_token": found[1], "token": _TOKEN}
        answer = await client.post("sign-in", data=fields, headers={"Origin": origin})
        assert answer.status_code == httpx.codes.SEE_OTHER, answer.text
        yield client


async def _page(client: httpx.AsyncClient, path: str) -> None:
    took = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        answer = await client.get(path)
        took.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == httpx.codes.OK, (path, answer.text)
    centiles = statistics.quantiles(took, n=100)
    figures = {"p50_ms": centiles[49], "p95_ms": centiles[94], "most_ms": max(took)}
    print(json.dumps({"name": f"/{path}"} | figures), flush=True)


async def _watched(post: Carteiro, client: httpx.AsyncClient, pid: int, topic: str) -> None:
    """The share of a core while they are open, and the figures change."""
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(_VIEWERS):
            stream = client.stream("GET", "live", params={"topic": topic})
            answer = await stack.enter_async_context(stream)
            assert answer.status_code == httpx.codes.OK, await answer.aread()
            readers.append(asyncio.create_task(_read(answer)))
        before, begun = cpu_seconds(pid), time.monotonic()
        while time.monotonic() < begun + _WATCHED_S:
            await post.backend.rollups.see(Counter(max_in_flight=int(time.time())))
            await post.backend.rollups.fold(limit=_LIST, most=_LIST)
            await asyncio.sleep(_NEWS_S)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - begun)
        for each in readers:
            each.cancel()
    line = {"name": topic.partition(":")[0], "viewers": _VIEWERS, "share": share}
    print(json.dumps(line), flush=True)


async def _read(answer: httpx.Response) -> None:
    async for _ in answer.aiter_raw():
        pass


async def _measure(asked: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with opened(folder) as post:
            redrive = await _fill(post, folder, asked)
            async with _served(folder) as (address, pid), _signed_in(address) as client:
                for path in (*_PAGES, f"redrives/{redrive}"):
                    await _page(client, path)
                for topic in ("overview:1h", f"redrive:{redrive}"):
                    await _watched(post, client, pid, topic)


def main() -> None:
    """Fill a store, then look at it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--tenants", type=int, default=10_000)
    parser.add_argument("--letters", type=int, default=100_000)
    run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
