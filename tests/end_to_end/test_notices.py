"""Notices from a real process: by log, by a webhook that is verified, and by e-mail through itself."""

import asyncio
import base64
from pathlib import Path

import httpx
import pytest

from carteiro.providers.resend.feedback import Signed, Webhooks
from support.receiving import a_receiver
from support.running import PATIENCE_S, up

SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
MAIL = {
    "CARTEIRO_NOTICES_MAIL_FROM": "carteiro@ops.example",
    "CARTEIRO_NOTICES_MAIL_TO": "ops@sandbox.test",
}


@pytest.mark.parametrize("command", ["up", "api"])
async def test_test_notice_reaches_every_channel(tmp_path: Path, command: str) -> None:
    """Also from a process without a worker: it must be able to say that no worker runs."""
    mails = MAIL if command == "up" else {}
    async with (
        a_receiver(500) as receiver,
        asyncio.timeout(3 * PATIENCE_S),
        up(
            tmp_path,
            command=command,
            CARTEIRO_NOTICES_WEBHOOK=receiver.url,
            CARTEIRO_NOTICES_WEBHOOK_SECRET="env:HOOK_SECRET",
            HOOK_SECRET=SECRET,
            **mails,
        ) as running,
    ):
        _, token = running.keys
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=running.address, headers=headers) as client:
            made = (await client.post("/admin/v1/alerts/test")).raise_for_status().json()
            while (await client.get("/admin/v1/notices")).json()["items"]:
                await asyncio.sleep(0.1)
        await running.logged("alert.test")

    first, second = receiver.received  # the first one was answered with an error
    for request in (first, second):
        assert Webhooks(SECRET).verified_id(Signed.of(request.headers), request.body) == made["id"]
    assert first.body == second.body
    assert [line["noticeId"] for line in running.log if line["event"] == "alert.test"] == [
        made["id"]
    ]
    sent = [line for line in running.log if line["event"] == "attempt.finished"]
    assert [line["companyId"] for line in sent] == (["carteiro-notices"] if mails else [])
