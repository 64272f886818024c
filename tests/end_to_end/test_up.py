"""``carteiro up`` for users: a real process, a real port, real signals."""

import asyncio
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from carteiro.app import Carteiro
from carteiro.model import MessageId, State
from support.commands import environment_of_a_command
from support.running import (
    PATIENCE_S,
    UNFINISHED,
    UNLIMITED,
    final_status_of,
    started,
    status_of,
    up,
)
from support.services import HOST, free_port
from support.table_queue import a_shared_database

EMAIL = {"to": "ok@sandbox.test", "subject": "Bom dia", "text": "Olá"}


async def test_printed_line_sends_an_email(tmp_path: Path) -> None:
    """From nothing to a delivered e-mail by pasting one line."""
    async with up(tmp_path) as running:
        answer = await pasted(running.curl)

        async with running.client() as client:
            assert await final_status_of(client, answer["outboxId"]) == "SENT"
        assert await running.ended(signal.SIGTERM) == 0


async def pasted(curl: list[str]) -> dict[str, Any]:
    """The answer to a curl line; without curl, to the request that the line describes."""
    if shutil.which("curl") is None:
        _, url, _, key, _, media_type, _, body = curl
        headers = dict(header.split(": ", 1) for header in (key, media_type))
        async with httpx.AsyncClient() as client:
            answer = (await client.post(url, content=body, headers=headers)).content
    else:
        process = await asyncio.create_subprocess_exec(*curl, stdout=PIPE, stderr=DEVNULL)
        answer, _ = await process.communicate()
    document: dict[str, Any] = orjson.loads(answer)
    return document


@pytest.mark.parametrize(
    "settings",
    [
        {"CARTEIRO_PROVIDER": "pigeon"},
        {
            "CARTEIRO_NOTICES_WEBHOOK": "https://hooks.example.com/",
            "CARTEIRO_NOTICES_WEBHOOK_SECRET": "env:NOT_SET_HERE",
        },
    ],
)
async def test_failed_start_creates_no_key(tmp_path: Path, settings: dict[str, str]) -> None:
    """A wrong setting must not use up the one time that the key is shown; the error is all that is said."""
    failing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "carteiro.cli", "up", "--port", "0"),
        cwd=tmp_path,
        env=environment_of_a_command(**settings),
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await failing.communicate()
    assert (failing.returncode, out, len(err.splitlines())) == (2, b"", 1)

    async with up(tmp_path) as running:
        assert running.key


async def test_log_is_json_for_any_input(tmp_path: Path) -> None:
    """Noise on the port writes no line of another shape, and serving goes on."""
    async with up(tmp_path) as running:
        host, port = running.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        await reader.read()
        writer.close()
        async with running.client() as client:
            too_large = await client.post("/v1/email/send", content=b" " * 5_000_000)
            live = await client.get("/health/live")
        assert await running.ended(signal.SIGTERM) == 0

    assert (too_large.status_code, live.status_code) == (415, 200)
    assert {line["level"] for line in running.log} == {"info"}


async def test_separate_worker_delivers_messages_of_others(tmp_path: Path) -> None:
    """``carteiro worker`` shares the file with other processes, and ends on SIGTERM."""
    async with (
        Carteiro.open(f"sqlite:///{tmp_path}/carteiro.db") as post,
        started(tmp_path, "worker") as running,
    ):
        answer = await post.send(tenant="acme", **EMAIL)
        async with asyncio.timeout(PATIENCE_S):
            while await post.backend.reading.unsettled([answer.id]):
                await asyncio.sleep(0.01)
        assert await running.ended(signal.SIGTERM) == 0

    assert await state_of(tmp_path, answer.id) is State.SENT


async def test_key_is_shown_once_and_another_on_demand(tmp_path: Path) -> None:
    """A later start cannot know the key; it says how to get another, and both are then valid."""
    async with up(tmp_path) as first:
        await first.ended(signal.SIGTERM)
    async with up(tmp_path) as second:
        await second.ended(signal.SIGTERM)
    async with up(tmp_path, "--new-key") as third:
        for key in (first.key, third.key):
            async with httpx.AsyncClient(base_url=third.address) as client:
                headers = {"X-API-Key": key}
                answer = await client.post("/v1/email/send", json=EMAIL, headers=headers)
                assert answer.status_code == 202

    assert second.keys == []
    assert "carteiro up --new-key" in second.announced
    assert "Each admin token was shown when it was created" in second.announced
    assert "a new one named 'admin': carteiro admin-token rotate" in second.announced
    assert first.key.encode() not in all_bytes_in(tmp_path)


async def test_announcement_has_no_password_and_no_invalid_flag(
    tmp_path: Path,
) -> None:
    """The queue is named; and ``carteiro api`` cannot create a key itself."""
    queue = f"redis://ana:s3cret@{HOST}:{free_port()}/0"
    with a_shared_database() as url:
        store = url.replace("@", ":s3cret@")
        settings = {"CARTEIRO_STORE": store, "CARTEIRO_QUEUE": queue}
        async with up(tmp_path, command="api", **settings) as first:
            await first.ended(signal.SIGTERM)
        async with up(tmp_path, command="api", **settings) as second:
            await second.ended(signal.SIGTERM)

    assert "s3cret" not in first.announced + second.announced
    assert f"Store: {store.replace('s3cret', '***')}" in second.announced
    assert f"Queue: {queue.replace('s3cret', '***')}" in second.announced
    assert "--new-key" not in second.announced
    assert "carteiro key add --tenant default" in second.announced
    assert "start carteiro worker" in first.announced


async def test_printed_line_for_a_real_provider_has_no_recipient(tmp_path: Path) -> None:
    """Pasted unchanged, it must not send a mail that bounces."""
    relay = {"CARTEIRO_PROVIDER": "smtp", "CARTEIRO_SMTP_PORT": str(free_port())}
    async with up(tmp_path, **relay) as running:
        await running.ended(signal.SIGTERM)

    assert "It is a real one" in running.announced
    assert "start carteiro worker" not in running.announced
    assert "YOUR_ADDRESS" in " ".join(running.curl)
    assert "sandbox.test" not in running.announced


def all_bytes_in(folder: Path) -> bytes:
    """Everything that was written to disk."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_sigterm_under_load_loses_nothing(tmp_path: Path) -> None:
    """Every message answered with 202 is there afterwards, and is sent exactly once."""
    accepted: list[MessageId] = []

    async def keep_sending(client: httpx.AsyncClient) -> None:
        while True:
            try:
                answer = await client.post("/v1/email/send", json=EMAIL)
            except httpx.TransportError:
                return  # it does not listen any more
            assert answer.status_code == 202, answer.text
            accepted.append(MessageId(answer.json()["outboxId"]))

    async with up(tmp_path, **UNLIMITED) as running, running.client() as client:
        senders = [asyncio.create_task(keep_sending(client)) for _ in range(8)]
        await asyncio.sleep(0.5)
        exit_code = await running.ended(signal.SIGTERM)
        await asyncio.gather(*senders)

    assert exit_code == 0
    assert len(accepted) > 8
    await assert_sent_once(tmp_path, accepted)


async def assert_sent_once(folder: Path, accepted: list[MessageId]) -> None:
    """Finish the rest, then check each message and its deliveries."""
    async with Carteiro.open(f"sqlite:///{folder}/carteiro.db") as post:
        working = asyncio.create_task(post.run_worker())
        async with asyncio.timeout(PATIENCE_S):
            while await post.backend.reading.unsettled(accepted):
                await asyncio.sleep(0.01)
        post.stop()
        await working
        for each in accepted:
            message = await post.backend.reading.message(each)
            assert message is not None
            assert message.state is State.SENT
            assert len(await post.backend.inbox.list(message=each)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_first_signal_lets_a_send_finish(tmp_path: Path, number: signal.Signals) -> None:
    """A send in flight has its time, and the exit code is 0."""
    async with up(tmp_path) as running, running.client() as client:
        slow = await in_flight(client, "slow-1@sandbox.test")
        exit_code = await running.ended(number)

    assert exit_code == 0
    assert await state_of(tmp_path, slow) is State.SENT


async def test_second_signal_does_not_wait(tmp_path: Path) -> None:
    """A send that would take long is dropped, and its message is kept for the next worker."""
    async with up(tmp_path) as running, running.client() as client:
        slow = await in_flight(client, "slow-25@sandbox.test")
        async with asyncio.timeout(PATIENCE_S / 4):
            exit_code = await running.ended(signal.SIGINT, signal.SIGINT)

    assert exit_code == 0
    assert await state_of(tmp_path, slow) in UNFINISHED


async def in_flight(client: httpx.AsyncClient, to: str) -> MessageId:
    """A message whose attempt has begun."""
    answer = await client.post("/v1/email/send", json=EMAIL | {"to": to})
    message = MessageId(answer.json()["outboxId"])
    async with asyncio.timeout(PATIENCE_S):
        while await status_of(client, message) != "SENT_ATTEMPT":
            await asyncio.sleep(0.01)
    return message


async def state_of(folder: Path, message: MessageId) -> State | None:
    """The state of the message without a worker."""
    async with Carteiro.open(f"sqlite:///{folder}/carteiro.db") as post:
        found = await post.backend.reading.message(message)
        return None if found is None else found.state
