"""The status pages of a ticket worker."""

import asyncio

import httpx

from carteiro.cli.tickets.page import page_part
from carteiro.config import load
from support.services import HOST, free_port


async def test_each_answer_ends_its_line() -> None:
    """After curl, the prompt is on the next line."""
    port, waits_for, paused = free_port(), ["", "Kafka", ""], list[str]()
    environ = {"CARTEIRO_TICKETS_METRICS_HOST": HOST, "CARTEIRO_TICKETS_METRICS_PORT": str(port)}
    page = page_part(
        load(environ=environ),
        lambda: b"figure 1\n",
        lambda: waits_for.pop(0),
        paused=lambda: paused,
    )
    running = asyncio.create_task(page.run())

    async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}", trust_env=False) as client:
        live = await client.get("/health/live")
        answers = [await client.get("/health/ready") for _ in range(2)]
        paused.append("BUILD")
        answers.append(await client.get("/health/ready"))
    page.stop()
    await running

    assert (live.status_code, live.text) == (200, "live\n")
    assert [(each.status_code, each.text) for each in answers] == [
        (200, "ready\n"),
        (503, "waiting: Kafka\n"),
        (200, "ready\npaused: BUILD\n"),
    ]
