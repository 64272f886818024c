"""A command as a real process: its announcement, its log, its end."""

import asyncio
import re
import shlex
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from carteiro.model import State
from support.commands import environment_of_a_command

PATIENCE_S = 20.0
UNLIMITED = {f"CARTEIRO_API_PER_{window}": "0" for window in ("MINUTE", "HOUR", "DAY")}
UNFINISHED = {State.ENQUEUED, State.RECEIVED, State.SENT_ATTEMPT, State.RETRY_SCHEDULED}


@dataclass
class Running:
    """A process of ours, and its announcement."""

    process: Process
    announced: str = ""
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address that it listens on."""
        return self._found(r"listens on (\S+)")

    @property
    def key(self) -> str:
        """The API key that it printed."""
        return self._found(r"^\s+(ck_\S+)$")

    @property
    def keys(self) -> list[str]:
        """All printed keys: the API key, then the admin token."""
        return re.findall(r"^\s+(c[ak]_\S+)$", self.announced, re.MULTILINE)

    @property
    def curl(self) -> list[str]:
        """The line to be pasted, as a shell reads it."""
        return shlex.split(self._found(r"^\s+(curl .*)$"))

    def client(self) -> httpx.AsyncClient:
        """A client with the printed key."""
        return httpx.AsyncClient(base_url=self.address, headers={"X-API-Key": self.key})

    async def logged(self, event: str) -> None:
        """Wait until this event is in the log."""
        while not any(line["event"] == event for line in self.log):
            await asyncio.sleep(0.01)

    async def ended(self, *signals: signal.Signals) -> int:
        """Send the signals, each when the one before has begun to act; the exit code."""
        for number, each in enumerate(signals):
            if number:
                await asyncio.wait_for(self.logged("worker.stopping"), PATIENCE_S)
            self.process.send_signal(each)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)

    def _found(self, pattern: str) -> str:
        found = re.search(pattern, self.announced, re.MULTILINE)
        assert found, self.announced
        return found.group(1)


@asynccontextmanager
async def started(folder: Path, *arguments: str, **settings: str) -> AsyncIterator[Running]:
    """A command in this folder, with these settings; killed if it is still running at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "carteiro.cli", *arguments),
        cwd=folder,
        env=environment_of_a_command(**settings),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    running = Running(process)
    following = asyncio.create_task(_follow_log(running))
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await following


@asynccontextmanager
async def up(
    folder: Path, *flags: str, command: str = "up", **settings: str
) -> AsyncIterator[Running]:
    """``carteiro up`` on a file in this folder and a free port, once it has printed its address."""
    async with started(folder, command, "--port", "0", *flags, **settings) as running:
        running.announced = await asyncio.wait_for(_announcement(running.process), PATIENCE_S)
        yield running


async def _announcement(process: Process) -> str:
    """Everything up to the end of the last paragraph: after a start it names the key, or how to get one."""
    assert process.stdout is not None
    announced = ""
    while not re.search(
        r"^(\s+curl.*|To create another.*Older keys stay valid\.)\n\n", announced, re.MULTILINE
    ):
        line = await process.stdout.readline()
        assert line, announced
        announced += line.decode()
    return announced


async def _follow_log(running: Running) -> None:
    assert running.process.stderr is not None
    async for line in running.process.stderr:
        running.log.append(orjson.loads(line))  # a line that is not JSON fails the test


async def status_of(client: httpx.AsyncClient, message: str) -> str:
    """The status of the message in the API."""
    return str((await client.get(f"/v1/emails/{message}")).json()["status"])


async def final_status_of(client: httpx.AsyncClient, message: str) -> str:
    """The final status of the message."""
    async with asyncio.timeout(PATIENCE_S):
        while (status := await status_of(client, message)) in UNFINISHED:
            await asyncio.sleep(0.01)
        return status
