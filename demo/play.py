"""Play a few minutes of mixed traffic against ``make run``: several tenants, failures included.

make demo: three minutes, then what is left is waited for, and some dead letters are redriven;
make demo ARGS="--seconds 20": a quick look.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Column, Table

from carteiro.api.access_keys import hash_key, hint_of, make_key
from carteiro.config import Settings, load
from carteiro.errors import CarteiroError
from carteiro.model import (
    DEAD,
    DeadReason,
    Key,
    MessageId,
    RedriveAnswer,
    State,
    StoredMessage,
    Tenant,
    TenantId,
)
from carteiro.ports import Backend
from carteiro.stores.open import open_backend, store_exists
from client import FAILURES, Client
from traffic import SENDERS, Sender

Tell: TypeAlias = Callable[[str], None]

_LONGEST_TAIL_S = 90.0  # a lost reply is waited for, twice
_PAGE = 500
_LOOK_EVERY_S = 0.5
_SAY_EVERY_S = 5.0
_ACCEPTED, _TOO_MANY = 202, 429
_NAME_STORE = "if that has --store, run this with CARTEIRO_STORE set to the same store"


class CannotPlay(CarteiroError):
    """There is nothing to play with; says what to do."""


@dataclass
class Run:
    """The counts so far."""

    accepted: dict[MessageId, TenantId] = field(default_factory=dict)
    refused: Counter[TenantId] = field(default_factory=Counter)
    redriven: set[MessageId] = field(default_factory=set)


# --- sending ------------------------------------------------------------------------------------


async def _send(sender: Sender, client: Client, run: Run, *, until: float) -> None:
    """Send as this tenant does, until that moment."""
    dice = random.Random(sender.tenant.id)
    while time.monotonic() < until:
        emails = sender.emails(dice)
        for status, outbox_id in await _posted(client, emails):
            if status == _ACCEPTED:
                run.accepted[MessageId(outbox_id)] = sender.tenant.id
            elif status == _TOO_MANY:
                run.refused[sender.tenant.id] += 1
            else:
                raise CannotPlay(f"an e-mail was answered with {status}: look at the log")
        await asyncio.sleep(min(sender.pause_s(), max(0.0, until - time.monotonic())))


async def _posted(client: Client, emails: Sequence[dict[str, Any]]) -> list[tuple[int, str]]:
    """The status and id of each."""
    try:
        if len(emails) == 1:
            answer = await client.post("/v1/email/send", emails[0])
            return [(answer.status, answer.document.get("outboxId", ""))]
        answer = await client.post("/v1/email/batch", {"messages": emails})
    except FAILURES as error:
        raise CannotPlay("Carteiro stopped answering: what it accepted is kept") from error
    if "results" not in answer.document:
        raise CannotPlay(f"the batch was refused with {answer.status}: {answer.document}")
    return [
        (each["status"], (each.get("accepted") or {}).get("outboxId", ""))
        for each in answer.document["results"]
    ]


# --- getting in ---------------------------------------------------------------------------------


async def _refuse_silence(address: str) -> None:
    try:
        await Client(address).get("/health/live")
    except FAILURES:
        text = f"nothing listens on {address}: start it with `make run` in another terminal"
        raise CannotPlay(text) from None


def _refuse_strange_settings(settings: Settings) -> None:
    if settings.provider != "sandbox":
        text = f"the provider is {settings.provider}: the demonstration plays with the sandbox only"
        raise CannotPlay(text)
    if settings.store.startswith("memory:") or not store_exists(settings):
        text = (
            f"the store {settings.store} cannot be reached from here: run it where `make run` runs, "
            f"{_NAME_STORE}"
        )
        raise CannotPlay(text)


@asynccontextmanager
async def _client_of(tenant: Tenant, backend: Backend, address: str) -> AsyncIterator[Client]:
    """A client with a key of its own, which ends with it."""
    secret = make_key()
    old = [key.id for key in await backend.keys.list(tenant.id) if key.revoked_at is None]
    await backend.keys.revoke(old, tenant=tenant.id)  # of a demonstration that was cut off
    key = await backend.keys.add(tenant.id, key_hash=hash_key(secret), hint=hint_of(secret))
    if not isinstance(key, Key):
        raise CannotPlay(f"tenant {tenant.id!r} can have no key: is another demonstration running?")
    try:
        yield Client(address, key=secret)
    finally:
        await backend.keys.revoke([key.id], tenant=tenant.id)


# --- watching -----------------------------------------------------------------------------------


@contextmanager
def _telling(console: Console) -> Iterator[Tell]:
    """Say how it goes: in place on a terminal, else with a line now and then."""
    said_at = 0.0

    def say(text: str) -> None:
        nonlocal said_at
        if console.is_terminal:
            status.update(text)
        elif time.monotonic() - said_at >= _SAY_EVERY_S:
            said_at = time.monotonic()
            console.print(text)

    with console.status("") as status:
        yield say


async def _watch(backend: Backend, run: Run, tell: Tell, *, until: float) -> None:
    while (left := until - time.monotonic()) > 0:
        waiting = len(await _unfinished(backend, run))
        tell(f"{left:.0f} s to go: {len(run.accepted):,} accepted, {waiting:,} under way")
        await asyncio.sleep(min(_LOOK_EVERY_S, left))


async def _settle_down(backend: Backend, run: Run, tell: Tell) -> None:
    """Wait until all is finished, but not forever."""
    until = time.monotonic() + _LONGEST_TAIL_S
    while (waiting := await _unfinished(backend, run)) and time.monotonic() < until:
        tell(f"nothing more is sent, {len(waiting):,} still in flight")
        await asyncio.sleep(_LOOK_EVERY_S)


async def _unfinished(backend: Backend, run: Run) -> list[MessageId]:
    found: list[MessageId] = []
    for page in _pages(list(run.accepted)):
        found += await backend.reading.unsettled(page)
    return found


async def _redrive(backend: Backend, run: Run) -> None:
    """Redrive the dead letters that a few more attempts may help."""
    helped = []
    for each in run.accepted:
        letter = await backend.dead_letters.show(each)
        if letter is not None and letter.reason is DeadReason.MAX_ATTEMPTS_EXCEEDED:
            helped.append(each)
    for page in _pages(helped):
        answers = await backend.dead_letters.redrive(page, by="demo")
        for each, answer in zip(page, answers, strict=True):
            if answer is RedriveAnswer.REDRIVEN:
                run.redriven.add(each)


def _pages(ids: list[MessageId]) -> list[list[MessageId]]:
    return [ids[first : first + _PAGE] for first in range(0, len(ids), _PAGE)]


# --- telling ------------------------------------------------------------------------------------


async def _summary(backend: Backend, run: Run, console: Console) -> None:
    """The results of all messages."""
    reasons: Counter[str] = Counter()
    rows = {sender.tenant.id: Counter({"refused": 0}) for sender in SENDERS}
    for each, tenant in run.accepted.items():
        message = await backend.reading.message(each)
        if message is None:
            continue  # pruned meanwhile
        rows[tenant].update(_signs(message, is_redriven=each in run.redriven))
        if message.state in DEAD:
            letter = await backend.dead_letters.show(each)
            reasons[letter.reason if letter else "dropped"] += 1
    columns = ("accepted", "sent", "retried", "redriven", "dead", "under way")
    table = Table(Column("tenant", no_wrap=True), box=None, pad_edge=False)  # fits 80 columns
    for column in (*columns, "refused (429)"):
        table.add_column(column, justify="right")
    for tenant, row in rows.items():
        counts = [*(row[column] for column in columns), run.refused[tenant]]
        table.add_row(tenant, *(f"{count:,}" for count in counts))
    console.print(table)
    for reason, count in reasons.most_common():
        console.print(f"dead, {reason}: {count:,}", highlight=False)
    console.print("Look closer: carteiro ls --tenant demo-unlucky, carteiro dead group --by code")


def _signs(message: StoredMessage, *, is_redriven: bool) -> list[str]:
    signs = {
        "accepted": True,
        "sent": message.state is State.SENT,
        "retried": message.attempts > 1,
        "redriven": is_redriven,
        "dead": message.state in DEAD,
        "under way": message.finished_at is None,
    }
    return [name for name, is_true in signs.items() if is_true]


# --- the whole ----------------------------------------------------------------------------------


async def _play(settings: Settings, address: str, seconds: float, console: Console) -> None:
    await _refuse_silence(address)
    _refuse_strange_settings(settings)
    async with open_backend(settings, governs=False) as backend:
        await backend.tenants.define([sender.tenant for sender in SENDERS])
        run = Run()
        try:
            with _telling(console) as tell:
                until = time.monotonic() + seconds
                async with asyncio.TaskGroup() as group:
                    group.create_task(_watch(backend, run, tell, until=until))
                    for sender in SENDERS:
                        group.create_task(_take_part(sender, backend, address, run, until))
                await _settle_down(backend, run, tell)
                await _redrive(backend, run)
                await _settle_down(backend, run, tell)
        finally:
            await _summary(backend, run, console)


async def _take_part(
    sender: Sender, backend: Backend, address: str, run: Run, until: float
) -> None:
    async with _client_of(sender.tenant, backend, address) as client:
        if (await client.get("/v1/emails?limit=1")).status != HTTPStatus.OK:
            text = (
                f"{address} does not know the keys that were just made: it uses another store; "
                f"{_NAME_STORE}"
            )
            raise CannotPlay(text)
        await _send(sender, client, run, until=until)


def main() -> int:
    """Play, or say why not."""
    settings = load()
    listens = f"http://127.0.0.1:{settings.api.port}"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--url", default=listens, help=f"where it listens; else {listens}")
    asked = parser.parse_args()
    console = Console(soft_wrap=True)
    try:
        asyncio.run(_play(settings, asked.url, asked.seconds, console))
    except CarteiroError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    except ExceptionGroup as errors:
        ours, others = errors.split(CarteiroError)
        if ours is None or others is not None:
            raise
        sys.stderr.write(f"demo: {ours.exceptions[0]}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
