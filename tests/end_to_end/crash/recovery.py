"""Recovery times under load: after every kind of loss of the queue, and during kills.

    python tests/end_to_end/crash/recovery.py --store redis+postgres --seconds 60

For each loss it prints the time until every waiting message was in the queue again, and until all of them
were done. For the kills (-9, of workers, and of the servers if any) it prints the messages a second
before and after them. The exit code is 0 only if the law of delivery held each time.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # a script's own folder is not enough

from redis.exceptions import RedisError

from carteiro.errors import StoreUnavailable
from carteiro.model import FINISHED, MessageId
from carteiro.stores.postgres import migrate
from end_to_end.crash.child import Orders
from end_to_end.crash.children import PATIENCE_S, Child, NeverHappened, children, wait_for_rest
from end_to_end.crash.law import broken
from end_to_end.crash.places import PREFIX, Place
from end_to_end.crash.post_office import PostOffice, opened
from end_to_end.crash.stores import STORES
from end_to_end.crash.traffic import TENANTS, an_email, send
from end_to_end.crash.trouble import until_taken
from support.postgres_server import PostgresServer, a_postgres
from support.redis_server import RedisServer, a_redis

_WORKERS = 2
_PER_BATCH = 200
_POLL_S = 0.02
_COUNT_EVERY_S = 0.2  # counting costs more with more messages: it must not be what is measured
_MOST_STARTS = 20
_REST_S = 180.0  # jobs of a dead worker come back after their hold

Server: TypeAlias = RedisServer | PostgresServer


@dataclass(frozen=True)
class Size:
    """Duration and load."""

    seconds: float = 60.0  # duration of the kills
    backlog: int = 3000  # messages that always wait
    window_s: float = 5.0  # period over which done messages are counted
    as_usual: bool = True  # calls and leases have their default durations


@dataclass(frozen=True)
class Setting:
    """A store, and its servers, which may be killed."""

    place: Place
    redis: RedisServer | None
    postgres: PostgresServer | None

    @property
    def servers(self) -> list[Server]:
        """The existing ones."""
        return [each for each in (self.redis, self.postgres) if each is not None]


@dataclass(frozen=True)
class Recovery:
    """Figures of the recovery after a loss."""

    waited: int  # messages that were not done when it happened
    queued_s: float
    done_s: float
    faults: Sequence[str]


@dataclass(frozen=True)
class Endurance:
    """Figures before, during and after the kills."""

    kills: int
    before: float  # messages a second
    after: float
    accepted: int
    faults: Sequence[str]


@contextmanager
def a_setting(store: str, folder: Path) -> Iterator[Setting]:
    """An empty store on separate servers."""
    queue, _, ledger = store.rpartition("+")
    with ExitStack() as stack:
        redis = stack.enter_context(a_redis()) if queue else None
        postgres = stack.enter_context(a_postgres()) if ledger == "postgres" else None
        if postgres is None:
            url = f"sqlite:///{folder / 'post.db'}"
        else:
            url = stack.enter_context(postgres.a_database(migrate))
        place = Place(url, str(folder), "" if redis is None else redis.url)
        yield Setting(place, redis, postgres)


# --- load


class _Load:
    """Sends while it runs, so that a number of messages always wait."""

    def __init__(self, post: PostOffice, backlog: int) -> None:
        self.accepted: list[MessageId] = []
        self._post = post
        self._backlog = backlog
        self._number = 0
        self.is_over = False

    async def fill(self) -> None:
        """Send until enough messages wait."""
        missing = self._backlog - await self._count(finished=False)
        for _ in range(0, missing, _PER_BATCH):
            emails = [an_email("ok", tenant=self._next_tenant()) for _ in range(_PER_BATCH)]
            await until_taken(partial(send, self._post, emails, self.accepted.extend))

    async def run(self) -> None:
        """Run until the end: messages being sent then are sent, and counted."""
        while not self.is_over:
            await self.fill()
            await asyncio.sleep(_COUNT_EVERY_S)

    async def rate(self, seconds: float) -> float:
        """Messages a second, over this time."""
        began, before = time.monotonic(), await self._count(finished=True)
        await asyncio.sleep(seconds)
        after = await self._count(finished=True)
        return (after - before) / (time.monotonic() - began)

    def _next_tenant(self) -> str:
        self._number += 1
        return TENANTS[self._number % len(TENANTS)]

    async def _count(self, *, finished: bool) -> int:
        while True:
            try:
                states = await self._post.backend.reading.states()
            except StoreUnavailable:
                await asyncio.sleep(_POLL_S)
            else:
                return sum(n for state, n in states.items() if (state in FINISHED) == finished)


@asynccontextmanager
async def _loaded(place: Place, size: Size) -> AsyncIterator[tuple[_Load, list[Child]]]:
    """Workers under load; in the end the load stops, and they have come to rest."""
    async with opened(place, as_usual=size.as_usual) as post:
        load = _Load(post, size.backlog)
        await load.fill()
        with children([Orders(place, as_usual=size.as_usual)] * _WORKERS) as workers:
            await _started(workers)
            sending = asyncio.create_task(load.run())
            try:
                yield load, workers
            finally:
                load.is_over = True
                await sending
            await asyncio.to_thread(wait_for_rest, place, _REST_S)
            for each in workers:
                each.tell(signal.SIGTERM)
            for each in workers:
                await asyncio.to_thread(each.wait_for_end)


async def _started(workers: list[Child]) -> None:
    """Wait until all work; one that started while a server was down is started again, as by a supervisor."""
    for number in range(len(workers)):
        for _ in range(_MOST_STARTS):
            if await asyncio.to_thread(workers[number].has_started):
                break
            await _replaced(workers, number)


async def _replaced(workers: list[Child], number: int) -> None:
    await asyncio.to_thread(workers[number].end)
    workers[number] = Child(workers[number].orders)


# --- losses


def _flush(server: RedisServer, _: Path) -> None:
    server.flush()


def _restore(server: RedisServer, copy: Path) -> None:
    server.stop()
    server.restore(copy)
    server.start()


def _kill(server: RedisServer, _: Path) -> None:
    server.kill()
    server.start()


def _fail_over(server: RedisServer, _: Path) -> None:
    server.kill()
    server.start(empty=True)  # at the same address for clients


LOSSES: Mapping[str, Callable[[RedisServer, Path], None]] = {
    "FLUSHALL": _flush,
    "an old AOF restored": _restore,
    "kill -9": _kill,
    "failover to an empty replica": _fail_over,
}


async def lose(setting: Setting, loss: str, size: Size) -> Recovery:
    """Lose the queue under load, and wait until every waiting message is done."""
    place, server = setting.place, setting.redis
    assert server is not None, "there is no queue to lose"
    async with _loaded(place, size) as (load, _):
        copy = await asyncio.to_thread(server.back_up)
        await load.rate(1.0)  # so that the copy is old
        async with asyncio.timeout(PATIENCE_S):
            while not (waiting := set(place.unfinished())):  # the workers may just have done all
                await load.fill()
        began = time.monotonic()
        await asyncio.to_thread(LOSSES[loss], server, copy)
        await _until(lambda: waiting.issubset(_queued_or_done(place, waiting)))
        queued_s = time.monotonic() - began
        await _until(lambda: waiting.isdisjoint(place.unfinished()))
        done_s = time.monotonic() - began
    return Recovery(len(waiting), queued_s, done_s, broken(place, load.accepted))


async def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not await asyncio.to_thread(is_so):
        if time.monotonic() > deadline:
            raise NeverHappened("it does not recover")
        await asyncio.sleep(_POLL_S)


def _queued_or_done(place: Place, waiting: Collection[MessageId]) -> set[MessageId]:
    try:
        with place.redis() as client:
            queued = {*client.hkeys(f"{PREFIX}:jobs")}
    except RedisError:
        return set()
    return queued | (set(waiting) - {*place.unfinished()})


# --- kills


async def endure(setting: Setting, seed: int, size: Size) -> Endurance:
    """Kill workers and servers repeatedly under load."""
    chance, kills = Random(seed), 0
    async with _loaded(setting.place, size) as (load, workers):
        before = await load.rate(size.window_s)
        ends = time.monotonic() + size.seconds
        while time.monotonic() < ends:
            if setting.servers and chance.random() < 0.25:
                await asyncio.to_thread(_kill_and_start, chance.choice(setting.servers))
            else:
                await _started(workers)
                await _replaced(workers, chance.randrange(len(workers)))
            kills += 1
        await _started(workers)
        after = await load.rate(size.window_s)
    faults = broken(setting.place, load.accepted)
    return Endurance(kills, before, after, len(load.accepted), faults)


def _kill_and_start(server: Server) -> None:
    server.kill()
    server.start()


# --- the command


def main() -> int:
    """Print the figures; 1 if the law broke."""
    told = _arguments()
    size = Size(seconds=told.seconds, backlog=told.backlog)
    faults: list[str] = []
    for loss in LOSSES if told.store.startswith("redis+") else ():
        with _somewhere(told.store) as setting:
            recovery = asyncio.run(lose(setting, loss, size))
        faults += recovery.faults
        _say(
            f"{loss}: {recovery.waited} messages waited; all in the queue again after"
            f" {recovery.queued_s:.1f} s, all done after {recovery.done_s:.1f} s"
        )
    with _somewhere(told.store) as setting:
        endured = asyncio.run(endure(setting, told.seed, size))
    faults += endured.faults
    _say(
        f"{endured.kills} kills in {size.seconds:.0f} s (seed {told.seed}), {endured.accepted} messages accepted;"
        f" done a second: {endured.before:.0f} before, {endured.after:.0f} after,"
        f" after / before {endured.after / max(endured.before, 1):.2f}"
    )
    for fault in faults:
        _say(f"  {fault}")
    _say(
        "the law is broken" if faults else "the law held: nothing lost, nothing finished sent again"
    )
    return 1 if faults else 0


@contextmanager
def _somewhere(store: str) -> Iterator[Setting]:
    with tempfile.TemporaryDirectory() as folder, a_setting(store, Path(folder)) as setting:
        yield setting


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", choices=STORES, default="redis+postgres", help="on which")
    parser.add_argument("--seconds", type=float, default=Size.seconds, help="how long it is killed")
    parser.add_argument("--backlog", type=int, default=Size.backlog, help="how many messages wait")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of who is killed when")
    return parser.parse_args()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
