"""Stopping under load, over HTTP: messages answered with 202 are kept, and sent; the process ends well."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGTERM

import httpx
import pytest

from carteiro.app import Carteiro
from carteiro.config import load
from carteiro.model import EventType, MessageId, State
from carteiro.runtime.inbox_watch import MOST_OF_ONE
from support.console import Person
from support.running import PATIENCE_S, UNFINISHED, Running, status_of, up

EMAIL = {"to": "ok@sandbox.test", "subject": "Bom dia", "text": "Olá"}
BATCH = {"messages": 20 * [EMAIL]}
ENOUGH = 100

_APART_S = 0.05  # two equal signals at once are one

SETTINGS = """
[api]
per_minute = 0
per_hour = 0
per_day = 0

[delivery]
call_limit_ms = 500
hold_margin_ms = 500
lease_ms = 1000
"""


def a_post_office_in(folder: Path, settings: str = SETTINGS) -> Path:
    """A folder whose settings accept any number of e-mails, and have a short timeout."""
    (folder / "carteiro.toml").write_text(settings)
    return folder


async def keep_sending(client: httpx.AsyncClient, accepted: list[MessageId]) -> None:
    """Send one by one until the server is gone; record those answered with 202."""
    try:
        while True:
            answer = await client.post("/v1/email/send", json=EMAIL)
            if answer.status_code == httpx.codes.ACCEPTED:
                accepted.append(MessageId(answer.json()["outboxId"]))
    except httpx.TransportError:
        return


async def keep_sending_lists(client: httpx.AsyncClient, accepted: list[MessageId]) -> None:
    """The same with lists."""
    try:
        while True:
            answer = await client.post("/v1/email/batch", json=BATCH)
            if answer.status_code == httpx.codes.OK:
                results = answer.json()["results"]
                accepted += [MessageId(each["accepted"]["outboxId"]) for each in results]
    except httpx.TransportError:
        return


async def told(running: Running, *signals: signal.Signals) -> int:
    """Send the signals one after the other; the exit code."""
    for each in signals:
        if running.process.returncode is None:
            running.process.send_signal(each)
        await asyncio.sleep(_APART_S)
    return await asyncio.wait_for(running.process.wait(), PATIENCE_S)


@pytest.mark.parametrize(
    ("command", "signals"),
    [
        ("up", (SIGINT,)),
        ("up", (SIGINT, SIGINT)),
        ("up", (SIGTERM, SIGTERM)),
        ("api", (SIGTERM,)),
        ("api", (SIGINT, SIGINT)),
    ],
)
async def test_stop_under_load_loses_nothing(
    tmp_path: Path, command: str, signals: tuple[signal.Signals, ...]
) -> None:
    """Exit code 0; messages answered with 202 are sent, a second time only if the first was in doubt."""
    accepted: list[MessageId] = []
    async with (
        up(a_post_office_in(tmp_path), command=command) as running,
        running.client() as client,
        asyncio.TaskGroup() as senders,
    ):
        for _ in range(8):
            senders.create_task(keep_sending(client, accepted))
        senders.create_task(keep_sending_lists(client, accepted))
        async with asyncio.timeout(PATIENCE_S):
            while len(accepted) < ENOUGH:
                await asyncio.sleep(0.01)
        assert await told(running, *signals) == 0

    await assert_all_sent(tmp_path, accepted)


@pytest.mark.parametrize("command", ["up", "api"])
async def test_signals_until_the_very_end_change_nothing(tmp_path: Path, command: str) -> None:
    """A third one, or one after everything is stored, ends well too."""
    async with (
        up(a_post_office_in(tmp_path), command=command) as running,
        running.client() as client,
    ):
        assert (await client.post("/v1/email/send", json=EMAIL)).is_success
        async with asyncio.timeout(PATIENCE_S):
            while running.process.returncode is None:
                for each in (SIGINT, SIGTERM):
                    with suppress(ProcessLookupError):
                        os.kill(
                            running.process.pid, each
                        )  # `send_signal` would take the exit code away
                await asyncio.sleep(0.001)
        assert running.process.returncode == 0


async def test_open_pages_and_waiting_requests_do_not_hold_a_process(tmp_path: Path) -> None:
    """A stream of the console and a wait for a mail end at once, long before the grace for requests."""
    folder = a_post_office_in(tmp_path, SETTINGS + "grace_ms = 600000\n")
    async with (
        up(folder) as running,
        running.client() as client,
        Person.at(running.address, timeout=PATIENCE_S) as person,
    ):
        await person.signed_in(running.keys[1])
        async with person.stream("GET", "live?topic=audit&topic=inbox") as stream:
            lines = stream.aiter_lines()
            while not (await anext(lines)).startswith("event: "):
                pass
            waiting = [
                asyncio.create_task(client.get("/v1/inbox?waitMs=60000", timeout=2 * PATIENCE_S))
                for _ in range(MOST_OF_ONE + 5)
            ]
            async with asyncio.timeout(PATIENCE_S):  # until all places are taken
                while (await client.get("/v1/inbox?waitMs=1")).is_success:
                    pass
            assert await told(running, SIGTERM) == 0
        answers = [await each for each in waiting]
        ended = [each.json() for each in answers if each.status_code == httpx.codes.OK]
        assert ended == [{"items": [], "nextCursor": None}] * len(ended)
        assert len(ended) >= MOST_OF_ONE - 1  # one place may have been that of the question


async def assert_all_sent(folder: Path, accepted: list[MessageId]) -> None:
    """Finish the rest, then check each message, its deliveries and its doubts."""
    settings = load(
        file=folder / "carteiro.toml", overrides={"store": f"sqlite:///{folder}/carteiro.db"}
    )
    async with Carteiro.open(settings=settings) as post:
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
            events = await post.backend.reading.events(each)
            doubts = sum(event.type is EventType.IN_DOUBT for event in events)
            deliveries = len(await post.backend.inbox.list(message=each))
            assert 1 <= deliveries <= 1 + doubts


async def test_stop_ends_with_its_grace_period(tmp_path: Path) -> None:
    """A send that takes longer is left, in doubt for the next worker; exit code 0."""
    folder = a_post_office_in(tmp_path, "[delivery]\ngrace_ms = 200\n")
    async with up(folder) as running, running.client() as client:
        answer = await client.post("/v1/email/send", json=EMAIL | {"to": "slow-29@sandbox.test"})
        slow = answer.json()["outboxId"]
        async with asyncio.timeout(PATIENCE_S):
            while await status_of(client, slow) != State.SENT_ATTEMPT:
                await asyncio.sleep(0.01)
        assert await told(running, SIGTERM) == 0

    async with Carteiro.open(f"sqlite:///{folder}/carteiro.db") as post:
        left = await post.backend.reading.message(MessageId(slow))
    assert left is not None
    assert left.state in UNFINISHED
