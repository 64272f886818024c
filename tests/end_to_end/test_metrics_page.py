"""The metrics page on a separate address: real processes, real ports."""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path
from signal import SIGTERM

import httpx
import pytest

from carteiro.app import Carteiro
from support.commands import environment_of_a_command
from support.redis_server import a_redis
from support.running import PATIENCE_S, started, up
from support.scraping import Page

EMAIL = {"to": "ok@sandbox.test", "subject": "Bom dia", "text": "Olá"}


def a_free_port() -> int:
    """A port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def with_metrics_on(folder: Path, port: int) -> Path:
    """A folder whose settings give the page a separate address."""
    (folder / "carteiro.toml").write_text(f'[metrics]\nhost = "127.0.0.1"\nport = {port}\n')
    return folder


async def scraped(port: int) -> Page:
    """The page, once it is served."""
    async with httpx.AsyncClient() as client, asyncio.timeout(PATIENCE_S):
        while True:
            try:
                answer = await client.get(f"http://127.0.0.1:{port}/metrics")
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
            else:
                return Page(answer.text)


@pytest.mark.parametrize("command", ["up", "api"])
async def test_server_has_a_separate_metrics_page(tmp_path: Path, command: str) -> None:
    """It needs no token there, and serves nothing else."""
    port = a_free_port()
    async with (
        up(with_metrics_on(tmp_path, port), command=command) as running,
        running.client() as client,
    ):
        await client.post("/v1/email/send", json=EMAIL)
        page = await scraped(port)
        other = await client.get(f"http://127.0.0.1:{port}/health/live")
        assert await running.ended(SIGTERM) == 0

    assert page("http_requests_total", method="POST", route="/v1/email/send", status="202") == 1
    assert page("pipeline_state_transitions_total", state="ENQUEUED") == 1
    assert other.status_code == 404


async def test_worker_has_a_metrics_page(tmp_path: Path) -> None:
    """It counts its sent messages, and stops with the worker."""
    port = a_free_port()
    async with (
        Carteiro.open(f"sqlite:///{tmp_path}/carteiro.db") as post,
        started(with_metrics_on(tmp_path, port), "worker") as running,
    ):
        answer = await post.send(tenant="acme", **EMAIL)
        async with asyncio.timeout(PATIENCE_S):
            while await post.backend.reading.unsettled([answer.id]):
                await asyncio.sleep(0.01)
            # Figures come a moment after the commit.
            while not (page := await scraped(port))("tenant_jobs_processed_total", tenant="acme"):
                await asyncio.sleep(0.01)
        assert await running.ended(SIGTERM) == 0

    assert page("tenant_jobs_processed_total", tenant="acme") == 1
    assert page("pipeline_final_state_total", state="SENT") == 1


async def ready(port: int, status: str) -> httpx.Response:
    """The readiness answer of a process, once it has this status."""
    async with httpx.AsyncClient() as client, asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(httpx.ConnectError):
                answer = await client.get(f"http://127.0.0.1:{port}/health/ready")
                if answer.json()["status"] == status:
                    return answer
            await asyncio.sleep(0.05)


async def test_worker_is_ready_only_with_its_queue(tmp_path: Path) -> None:
    """Without it there is nothing to do; it stays, and goes on when the queue is back."""
    port = a_free_port()
    with a_redis() as queue:
        async with started(
            with_metrics_on(tmp_path, port), "worker", CARTEIRO_QUEUE=queue.url
        ) as running:
            before = await ready(port, "ready")
            queue.stop()
            meanwhile = await ready(port, "unready")
            queue.start()
            after = await ready(port, "ready")
            async with httpx.AsyncClient() as client:
                live = await client.get(f"http://127.0.0.1:{port}/health/live")
            assert await running.ended(SIGTERM) == 0

    assert before.status_code == after.status_code == live.status_code == 200
    assert before.json()["roles"] == {"worker": "ready"}
    assert meanwhile.status_code == 503
    assert (meanwhile.json()["ledger"], meanwhile.json()["queue"]) == ("writable", "away")


async def test_server_that_works_is_ready_in_both_roles(tmp_path: Path) -> None:
    """On the address of the API; the other one has the metrics alone."""
    async with up(tmp_path) as running, running.client() as client:
        both = await client.get("/health/ready")
        assert await running.ended(SIGTERM) == 0

    assert both.json()["roles"] == {"api": "ready", "worker": "ready"}


async def test_port_in_use_is_reported_before_anything_is_created(tmp_path: Path) -> None:
    """The key of the first start is shown once: it must not be used up by a start that fails."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with_metrics_on(tmp_path, taken.getsockname()[1])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "carteiro", "up", "--port", "0"),
            cwd=tmp_path,
            env=environment_of_a_command(),
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)

    assert (process.returncode, out) == (1, b"")
    assert b"CARTEIRO_METRICS_PORT" in err
    with_metrics_on(tmp_path, a_free_port())
    async with up(tmp_path) as running:
        assert running.key
