"""Readiness over HTTP: real servers stop and start again under an open app."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import redis

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from support.http import ADMIN_TOKEN, a_client, a_client_of, answer_in, opened, sent
from support.postgres_server import SUPERUSER, a_postgres
from support.redis_server import RedisServer, a_redis
from support.set_ups import postgres_url
from support.shared_servers import shared_postgres

pytestmark = pytest.mark.servers

PATIENCE_S = 30
SECRET = "swordfish"


@pytest.fixture
def queue() -> Iterator[RedisServer]:
    """A server that a test may stop and start."""
    with a_redis() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each ledger that supports a separate queue."""
    return (
        f"sqlite:///{tmp_path}/carteiro.db" if request.param == "sqlite" else postgres_url(tmp_path)
    )


async def becomes(client: httpx.AsyncClient, status: str) -> httpx.Response:
    """The readiness answer, once it has this status."""
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await client.get("/health/ready")).json()["status"] != status:
            await asyncio.sleep(0.02)
    return answer


def both_roles(post: Carteiro) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """A client of a process that is API and worker."""
    return a_client_of(create_api(post, works=True), key=None)


async def test_app_without_its_queue_accepts_and_is_degraded(
    store: str, queue: RedisServer
) -> None:
    """A load balancer goes on sending; messages are stored, and the answer names the queue."""
    async with opened(store, queue=queue.url) as post, a_client(post) as client:
        before = answer_in(await becomes(client, "ready"))
        queue.stop()
        meanwhile = answer_in(await becomes(client, "degraded"), 200)
        accepted = await sent(client)
        queue.start()
        after = answer_in(await becomes(client, "ready"))

        assert await post.backend.reading.message(accepted["outboxId"]) is not None

    expected = {
        "status": "ready",
        "ledger": "writable",
        "queue": "reachable",
        "roles": {"api": "ready"},
    }
    assert before == after == expected
    assert (meanwhile["ledger"], meanwhile["queue"]) == ("writable", "away")
    assert "The queue is unreachable" in meanwhile["detail"]
    assert str(queue.port) not in str(meanwhile), "the address is not shown to strangers"


async def test_app_opens_while_the_queue_is_down(store: str, queue: RedisServer) -> None:
    """It accepts, too."""
    queue.stop()

    async with opened(store, queue=queue.url) as post, a_client(post) as client:
        answer_in(await becomes(client, "degraded"), 200)
        await sent(client)


async def test_process_of_both_roles_is_ready_like_an_api(store: str, queue: RedisServer) -> None:
    """It can take requests as long as it can accept messages."""
    async with opened(store, queue=queue.url) as post, both_roles(post) as client:
        before = answer_in(await becomes(client, "ready"))
        queue.stop()
        meanwhile = answer_in(await becomes(client, "degraded"), 200)

    assert before["roles"] == {"api": "ready", "worker": "ready"}
    assert meanwhile["roles"] == {"api": "degraded", "worker": "unready"}


async def test_full_queue_is_reported(store: str, queue: RedisServer) -> None:
    """New messages wait, and workers go on with those in the queue."""
    async with opened(store, queue=queue.url) as post, both_roles(post) as client:
        await becomes(client, "ready")
        with redis.Redis.from_url(queue.url) as server:
            server.config_set("maxmemory", 1)
            meanwhile = answer_in(await becomes(client, "degraded"), 200)
            server.config_set("maxmemory", 0)
        await becomes(client, "ready")

    assert meanwhile["queue"] == "full"
    assert meanwhile["roles"] == {"api": "degraded", "worker": "ready"}


async def test_admin_endpoints_work_without_the_queue(tmp_path: Path, queue: RedisServer) -> None:
    """Explanations of waits, and all figures but those of the queue."""
    async with opened(f"sqlite:///{tmp_path}/carteiro.db", queue=queue.url) as post:
        queue.stop()
        async with a_client(post) as client:
            waits = (await sent(client))["outboxId"]
        async with a_client(post, key=ADMIN_TOKEN) as admin:
            told = answer_in(await admin.get(f"/admin/v1/messages/{waits}/explain"))
            stats = answer_in(await admin.get("/admin/v1/stats"))

    assert told["why"] == "queue_away"
    assert (stats["depths"], stats["states"]) == (None, {"ENQUEUED": 1})


async def test_app_without_its_ledger_is_not_ready() -> None:
    """No message can be stored; it is ready again when the ledger is back."""
    with a_postgres(password=SECRET) as server:
        async with opened(server.url()) as post, a_client(post) as client:
            before = answer_in(await client.get("/health/ready"))
            server.stop()
            away = await client.get("/health/ready")
            server.start()
            after = answer_in(await becomes(client, "ready"))

    assert before == after == {"status": "ready", "ledger": "writable", "roles": {"api": "ready"}}
    assert answer_in(away, 503)["ledger"] == "unavailable"
    assert int(away.headers["Retry-After"]) > 0
    for secret in (SECRET, str(server.port), SUPERUSER):
        assert secret not in away.text


@pytest.mark.parametrize("has_queue", [False, True])
async def test_read_only_ledger_is_not_ready(
    tmp_path: Path, queue: RedisServer, has_queue: bool
) -> None:
    """As a replica: it answers every query, and stores nothing."""
    url = postgres_url(tmp_path)
    options = {"queue": queue.url} if has_queue else {}

    async with opened(url, **options) as post, a_client(post) as client:
        await becomes(client, "ready")
        only_readable(url, is_so=True)
        await becomes(client, "unready")  # perhaps because its connection was closed
        unready = answer_in(await client.get("/health/ready"), 503)
        found = await client.get("/v1/emails")
        only_readable(url, is_so=False)
        await becomes(client, "ready")

    assert unready["ledger"] == "unavailable"
    assert found.status_code == 200, "it can still be read"


def only_readable(url: str, *, is_so: bool) -> None:
    """Make every session of a database read-only, or writable again; open sessions have to reconnect."""
    name, word = urlsplit(url).path.lstrip("/"), "on" if is_so else "off"
    shared_postgres().psql(
        f"ALTER DATABASE {name} SET default_transaction_read_only = {word};"
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )
