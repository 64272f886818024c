"""The Alertmanager of the tests takes alerts, shows them, and calls a webhook with them."""

import asyncio
import json
from datetime import UTC, datetime
from uuid import uuid4

import httpx

from support.alertmanager_server import AlertmanagerServer, an_alertmanager
from support.services import HOST, PATIENCE


def post(server: AlertmanagerServer, name: str) -> None:
    """Send an alert as its clients do."""
    alert = {
        "labels": {"alertname": name},
        "annotations": {"ticket_id": "T-1"},
        "startsAt": datetime.now(UTC).isoformat(),
    }
    httpx.post(f"{server.url}/api/v2/alerts", json=[alert]).raise_for_status()


def test_alert_can_be_read_back(alertmanager: AlertmanagerServer) -> None:
    """Over its API, version 2."""
    name = f"alert-{uuid4().hex}"

    post(alertmanager, name)

    [found] = [each for each in alertmanager.alerts() if each["labels"]["alertname"] == name]
    assert found["annotations"] == {"ticket_id": "T-1"}
    assert found["status"]["state"] == "active"


async def test_webhook_is_called() -> None:
    """A test can see what a person would have been sent."""
    told: asyncio.Queue[str] = asyncio.Queue()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [
            line for line in head.lower().splitlines() if line.startswith(b"content-length:")
        ]
        body = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        told.put_nowait(body["alerts"][0]["labels"]["alertname"])

    async with await asyncio.start_server(take, HOST, 0) as webhook:
        port = webhook.sockets[0].getsockname()[1]
        with an_alertmanager(webhook=f"http://{HOST}:{port}/") as server:
            await asyncio.to_thread(post, server, "told")
            async with asyncio.timeout(PATIENCE):
                assert await told.get() == "told"
