"""Starting, stopping and listening to the processes that are to die; bringing their store to rest."""

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from carteiro.model import MessageId
from end_to_end.crash.child import Orders, carry_out
from end_to_end.crash.places import Place
from end_to_end.crash.post_office import opened
from end_to_end.crash.traffic import prepare
from support.forks import forks

PATIENCE_S = 180.0  # far more than anything here takes: a wait of this length never ends
_POLL_S = 0.01


class NeverHappened(AssertionError):
    """The awaited event did not come."""


class Child:
    """A child process and its output so far."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.accepted: list[MessageId] = []
        self._started = threading.Event()
        self._said, said = forks().Pipe(duplex=False)
        self._process = forks().Process(target=carry_out, args=(orders, {**os.environ}, said))
        self._process.start()
        said.close()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def wait_for_start(self) -> None:
        """Wait until it works."""
        if not self.has_started():
            raise NeverHappened("the child did not start, see its log")

    def has_started(self) -> bool:
        """Wait until it works, or has ended without."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._started.wait(_POLL_S):
            if not self._process.is_alive():
                self._listener.join(PATIENCE_S)
                return self._started.is_set()
            if time.monotonic() > deadline:
                raise NeverHappened("the child neither started nor ended")
        return True

    def wait_for_stop(self) -> None:
        """Wait until it has stopped where its plan says."""
        if not self.has_stopped():
            raise NeverHappened("the child ended before it came to its point")

    def has_stopped(self) -> bool:
        """Wait until it has stopped where its plan says, or ended without having come there."""
        deadline = time.monotonic() + PATIENCE_S
        while not _is_stopped(self._process.pid):
            if not self._process.is_alive():
                return False
            if time.monotonic() > deadline:
                raise NeverHappened("the child neither stopped nor ended")
            time.sleep(_POLL_S)
        return True

    def wait_for_end(self) -> int:
        """Wait until it has ended and its output is read; return its exit code, below 0 the signal."""
        self._process.join(PATIENCE_S)
        if self._process.exitcode is None:
            raise NeverHappened("the child did not end")
        self._listener.join(PATIENCE_S)
        return self._process.exitcode

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal; one that has ended does not hear it."""
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def end(self) -> None:
        """Make sure that it has ended."""
        self._process.kill()
        self.wait_for_end()

    def _listen(self) -> None:
        with self._said, open(self._said.fileno(), "rb", closefd=False) as lines:
            for line in lines:
                self._hear(line)

    def _hear(self, line: bytes) -> None:
        told = json.loads(line)
        self.accepted += told.get("accepted", ())
        if "started" in told:
            self._started.set()


def _is_stopped(pid: int | None) -> bool:
    """True if no thread of it goes on."""
    try:
        tasks = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):  # it, or one of them, has just ended
        return False
    return bool(tasks) and all(each.rpartition(")")[2].split()[0] == "T" for each in tasks)


@contextmanager
def children(orders: Sequence[Orders]) -> Iterator[list[Child]]:
    """Children that do not outlive the block; neither do their replacements in the list."""
    started: list[Child] = []
    try:
        for each in orders:
            started.append(Child(each))  # noqa: PERF401 # what has started must be ended, whatever comes
        yield started
    finally:
        for one in started:
            one.end()


@contextmanager
def child(orders: Orders) -> Iterator[Child]:
    """A child that does not outlive the block."""
    with children([orders]) as [started]:
        yield started


def prepared(place: Place, seed: int) -> list[MessageId]:
    """Fill the store, with something left to reap and something to expire."""
    accepted: list[MessageId] = []

    async def make() -> None:
        async with opened(place) as post:
            await prepare(post, Random(-1 - seed), accepted.extend)

    asyncio.run(make())
    return accepted


def sent(place: Place, emails: Sequence[dict[str, Any]]) -> list[MessageId]:
    """Submit e-mails, without a worker."""

    async def send() -> list[MessageId]:
        async with opened(place) as post:
            return [answer.id for answer in await post.send_many(emails)]  # type: ignore[union-attr]

    return asyncio.run(send())


def sent_tasks(place: Place, names: Sequence[str]) -> list[MessageId]:
    """Submit tasks, without a worker."""
    accepted: list[MessageId] = []

    async def send() -> None:
        async with opened(place) as post:
            for number, name in enumerate(names):
                answer = await getattr(post.tasks, name).send(
                    tenant="acme", mark=f"{name}-{number}"
                )
                accepted.append(answer.id)

    asyncio.run(send())
    return accepted


def bring_to_rest(place: Place, *, as_usual: bool = False, patience_s: float = PATIENCE_S) -> None:
    """Run an undisturbed worker until no job is left; ``as_usual``: for any speed of the machine."""
    asyncio.run(_rest(place, as_usual=as_usual, patience_s=patience_s))


def wait_for_rest(place: Place, patience_s: float = PATIENCE_S) -> None:
    """Wait until the running workers have left no job."""
    deadline = time.monotonic() + patience_s
    while waiting := place.waiting():
        if time.monotonic() > deadline:
            raise NeverHappened(f"still waiting: {waiting}")
        time.sleep(_POLL_S)


async def _rest(place: Place, *, as_usual: bool, patience_s: float) -> None:
    async with opened(place, as_usual=as_usual) as post:
        working = asyncio.create_task(post.run_worker())
        deadline = time.monotonic() + patience_s
        await asyncio.sleep(_POLL_S)  # a worker that has not begun cannot be stopped
        while (waiting := place.waiting()) and not working.done():
            if time.monotonic() > deadline:
                raise NeverHappened(f"still waiting: {waiting}")
            await asyncio.sleep(_POLL_S)
        post.stop()
        await working
