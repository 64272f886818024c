"""Commands as real processes, also with a running server on the same file."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import httpx

from carteiro.app import Carteiro
from carteiro.model import State
from support.commands import environment_of_a_command
from support.library import row_of
from support.running import PATIENCE_S, final_status_of, started, up

EMAIL = ("--to", "ok@sandbox.test", "--subject", "Bom dia", "--text", "Olá")


async def carteiro(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command to its end: exit code, stdout, stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "carteiro", *arguments),
        cwd=folder,
        env=environment_of_a_command(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def asked(folder: Path, *arguments: str) -> dict[str, Any]:
    """The JSON document of a successful command."""
    code, out, err = await carteiro(folder, *arguments, "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


async def test_process_handles_due_messages_and_ends(tmp_path: Path) -> None:
    """Up to its limit; the rest waits for the next run, and scheduled ones for their time."""
    for _ in range(3):
        await asked(tmp_path, "send", *EMAIL)
    await asked(tmp_path, "send", *EMAIL, "--at", "2100-01-01T00:00:00Z")

    first = await asked(tmp_path, "process", "--limit", "2")
    second = await asked(tmp_path, "process")
    third = await asked(tmp_path, "process")

    assert first == {"processed": 2, "states": {"SENT": 2}}
    assert second == {"processed": 1, "states": {"SENT": 1}}
    assert third == {"processed": 0, "states": {}}
    assert (await asked(tmp_path, "stats"))["states"] == {"SENT": 3, "ENQUEUED": 1}


async def test_process_records_its_run(tmp_path: Path) -> None:
    """With cron, doctor reports if it runs."""
    await asked(tmp_path, "send", *EMAIL)
    _, before, _ = await carteiro(tmp_path, "doctor", "--json")
    await asked(tmp_path, "process")
    _, after, _ = await carteiro(tmp_path, "doctor", "--json")

    assert (level_of("worker", before), level_of("worker", after)) == ("warn", "ok")


def level_of(check: str, findings: str) -> str:
    """The level of this finding of doctor."""
    [level] = [
        each["level"] for each in map(json.loads, findings.splitlines()) if each["check"] == check
    ]
    return str(level)


async def test_process_stops_on_a_signal(tmp_path: Path) -> None:
    """A send in flight may end; exit code 0."""
    async with Carteiro.open(f"sqlite:///{tmp_path}/carteiro.db") as post:
        slow = await post.send(
            tenant="acme", to="slow-2@sandbox.test", subject="Bom dia", text="Olá"
        )
        async with started(tmp_path, "process") as running:
            async with asyncio.timeout(PATIENCE_S):
                while (await row_of(post, slow.id)).state is State.ENQUEUED:
                    await asyncio.sleep(0.01)
            assert await running.ended(signal.SIGTERM) == 0

        assert (await row_of(post, slow.id)).state is State.SENT


async def test_commands_work_alongside_a_server(tmp_path: Path) -> None:
    """A message accepted by one is seen and sent by the other, on one file."""
    async with up(tmp_path) as running, running.client() as client:
        sent = await asked(tmp_path, "send", *EMAIL)
        assert await final_status_of(client, sent["outboxId"]) == "SENT"

        await asked(tmp_path, "tenant", "pause", "default")
        held = (await client.post("/v1/email/send", json=dict(zip(*BODY, strict=True)))).json()
        waits = await asked(tmp_path, "explain", held["outboxId"])
        await asked(tmp_path, "tenant", "resume", "default")
        assert await final_status_of(client, held["outboxId"]) == "SENT"

        await asked(tmp_path, "backup", "copy.db")
        copy = await asked(tmp_path, "show", held["outboxId"], "--store", "sqlite:///copy.db")
        assert await running.ended(signal.SIGTERM) == 0

    assert (waits["why"], copy["status"]) == ("tenant_paused", "SENT")


BODY = (("to", "subject", "text"), ("ok@sandbox.test", "Bom dia", "Olá"))


async def test_api_alone_accepts_and_sends_nothing(tmp_path: Path) -> None:
    """A separate worker sends its messages."""
    async with up(tmp_path, command="api") as running, running.client() as client:
        accepted = (await client.post("/v1/email/send", json=dict(zip(*BODY, strict=True)))).json()
        explained = await asked(tmp_path, "explain", accepted["outboxId"])
        done = await asked(tmp_path, "process")
        assert await running.ended(signal.SIGTERM) == 0

    assert (explained["why"], done["states"]) == ("turn", {"SENT": 1})


async def test_admin_token_opens_endpoints_that_a_key_does_not(tmp_path: Path) -> None:
    """It is shown once; after a rotation the old one is refused and the new one is valid."""
    async with up(tmp_path) as running:
        key, token = running.keys
        before = [await status_with(running.address, each) for each in (key, token)]
        rotated = (await asked(tmp_path, "admin-token", "rotate", "--yes"))["token"]
        await running.ended(signal.SIGTERM)
    async with up(tmp_path) as again:
        after = [await status_with(again.address, each) for each in (token, rotated)]

    assert before == [401, 200]
    assert after == [401, 200]
    assert again.keys == []


async def status_with(address: str, token: str) -> int:
    """The answer of the admin endpoints to this token."""
    async with httpx.AsyncClient(base_url=address) as client:
        headers = {"Authorization": f"Bearer {token}"}
        return (await client.get("/admin/v1/tenants", headers=headers)).status_code


async def test_empty_list_prints_nothing_for_programs(tmp_path: Path) -> None:
    """Exit code 0, and not a byte on stdout."""
    await asked(tmp_path, "migrate")

    for command in (("ls",), ("dead", "ls"), ("recipient", "ls", "--tenant", "default")):
        assert await carteiro(tmp_path, *command, "--json") == (0, "", ""), command
