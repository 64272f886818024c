"""`carteiro move` as a separate process: with a server at work, and killed midway."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from carteiro.cli.exit_codes import ExitCode
from carteiro.model import State
from carteiro.stores.postgres import open_postgres
from carteiro.stores.sqlite import open_sqlite
from support.builders import ACME, messages, tenants_named
from support.commands import environment_of_a_command
from support.running import PATIENCE_S, UNLIMITED, Running, final_status_of, up
from support.shared_servers import shared_postgres
from support.steps import accepted

EMAIL = {"to": "ok@sandbox.test", "subject": "Bom dia", "text": "Olá"}
LATER = EMAIL | {"scheduledAt": "2100-01-01T00:00:00Z"}
MANY = 12_000


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database, without a schema."""
    with shared_postgres().a_database() as made:
        yield made


async def moving(folder: Path, url: str, *flags: str) -> Process:
    """``carteiro move`` from the file in this folder to a database."""
    source = f"sqlite:///{folder / 'carteiro.db'}"
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "carteiro", "move", "--from", source, "--to", url, *flags),
        cwd=folder,
        env=environment_of_a_command(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )


async def ended(process: Process) -> tuple[int, str, str]:
    """Its exit code and output."""
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def moved(folder: Path, url: str) -> dict[str, Any]:
    """Move to the end; the printed document."""
    code, out, err = await ended(await moving(folder, url, "--json"))
    assert code == ExitCode.OK, err
    document: dict[str, Any] = json.loads(out)
    return document


async def test_messages_accepted_before_the_move_are_sent_after_it(
    tmp_path: Path, url: str
) -> None:
    """A message that arrives at its start is either refused or moved; the old store answers 503 from then on."""
    known: list[str] = []
    async with up(tmp_path, **UNLIMITED) as old, old.client() as client:
        known.append(await _posted(client, LATER))
        slow = await _posted(client, EMAIL | {"to": "slow-2@sandbox.test"})
        move = await moving(tmp_path, url)
        while (answer := await client.post("/v1/email/send", json=EMAIL)).status_code == 202:
            known.append(answer.json()["outboxId"])
        code, out, err = await ended(move)
        before = (await client.get(f"/v1/emails/{known[0]}")).json()
    async with up(tmp_path) as again, _client(again, old.key) as client:
        restarted = await client.post("/v1/email/send", json=EMAIL)

    assert (code, answer.status_code, restarted.status_code) == (ExitCode.OK, 503, 503), err
    assert "moved to another store" in answer.text
    assert "stays closed" in out
    async with up(tmp_path, "--store", url) as new, _client(new, old.key) as client:
        there = (await client.get(f"/v1/emails/{known[0]}")).json()
        ends = [await final_status_of(client, each) for each in (slow, *known[1:])]
        fresh = await final_status_of(client, await _posted(client, EMAIL))
    assert there == before
    assert set(ends) == {State.SENT}
    assert fresh == State.SENT


async def test_killed_move_goes_on_when_it_is_run_again(tmp_path: Path, url: str) -> None:
    """Nothing is missing, nothing is there twice."""
    new = messages(MANY)
    async with open_sqlite(tmp_path / "carteiro.db") as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *new)
    killed = 0
    for table in ("messages", "unfinished"):
        move = await moving(tmp_path, url)
        await asyncio.wait_for(_has_rows(url, table), PATIENCE_S)
        move.send_signal(signal.SIGKILL)
        killed += (await ended(move))[0] == -signal.SIGKILL

    rows = (await moved(tmp_path, url))["rows"]

    assert killed > 0
    assert [rows[each] for each in ("messages", "contents", "unfinished", "jobs")] == [MANY] * 4
    async with open_postgres(url) as backend:
        states = await backend.reading.states()
        unsettled = await backend.reading.unsettled([each.id for each in new])
    assert states == {State.ENQUEUED: MANY}
    assert len(unsettled) == MANY


async def test_move_can_be_undone(tmp_path: Path, url: str) -> None:
    """By the same command, while the target has done nothing."""
    async with up(tmp_path) as running, running.client() as client:
        await _posted(client, LATER)
        await moved(tmp_path, url)
        refused = await client.post("/v1/email/send", json=EMAIL)

        code, out, err = await ended(await moving(tmp_path, url, "--reopen"))

        sent = await final_status_of(client, await _posted(client, EMAIL))
    assert (code, refused.status_code, sent) == (ExitCode.OK, 503, State.SENT), err
    assert "open again" in out


async def test_missing_file_is_not_created(tmp_path: Path, url: str) -> None:
    """A mistyped name must not be moved as an empty store."""
    code, _, err = await ended(await moving(tmp_path, url))

    assert code == ExitCode.NOT_FOUND
    assert "there is no store" in err
    assert not (tmp_path / "carteiro.db").exists()


async def test_move_goes_from_a_file_to_a_database(tmp_path: Path, url: str) -> None:
    """Any other direction is refused."""
    async with open_sqlite(tmp_path / "carteiro.db"):
        pass

    code, _, err = await ended(await moving(tmp_path, f"sqlite:///{tmp_path}/other.db"))

    assert code == ExitCode.WRONG_USE
    assert "sqlite:///FILE" in err


async def _posted(client: httpx.AsyncClient, email: dict[str, str]) -> str:
    answer = await client.post("/v1/email/send", json=email)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["outboxId"])


def _client(running: Running, key: str) -> httpx.AsyncClient:
    """A client with a key that was shown before."""
    return httpx.AsyncClient(base_url=running.address, headers={"X-API-Key": key})


async def _has_rows(url: str, table: str) -> None:
    """Wait until some rows of a table have been moved."""
    while not await asyncio.to_thread(_rows, url, table):
        await asyncio.sleep(0.005)


def _rows(url: str, table: str) -> bool:
    with psycopg.connect(url) as connection:
        try:
            return bool(connection.execute(f"SELECT FROM carteiro.{table} LIMIT 1").fetchall())
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return False
