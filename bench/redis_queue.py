"""The figures with a queue on Redis: a server of our own, its log written every second, and its peers on the same one.

Our ledger is on Postgres, and counted with the server; the peers keep everything in Redis.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext

import any_store
import beside
from carteiro import Carteiro
from carteiro.errors import ConfigError
from figures import Missing, lines_of, print_table
from servers import Postgres, Redis, postgres, redis


@contextmanager
def _pair(queue: Redis, ledger: Postgres) -> Iterator[dict[str, str]]:
    """Environment of a measurement: an empty queue and a new database."""
    with queue.emptied() as one, ledger.a_database() as other:
        pids = f"{one['BENCH_SERVER_PIDS']} {other['BENCH_SERVER_PIDS']}"
        yield one | other | {"BENCH_SERVER_PIDS": pids}


def measure(names: Iterable[str], jobs: int) -> None:
    """Start the servers and print the tables of these parts."""
    try:
        with redis() as queue, postgres() as ledger:
            with _pair(queue, ledger) as store:
                asyncio.run(_try(store))
            for name in names:
                PARTS[name](queue, ledger, jobs)
    except Missing as missing:
        print(f"\n{missing}")


async def _try(store: dict[str, str]) -> None:
    try:
        async with Carteiro.open(store["BENCH_STORE"], queue=store["BENCH_QUEUE"]):
            return
    except ConfigError as error:
        raise Missing(f"Redis with Postgres is skipped: {error}") from error


def _drains(queue: Redis, ledger: Postgres, jobs: int) -> None:
    """No-op tasks through one worker process, and through each peer."""
    few = max(1000, jobs // 5)  # of those that would take a minute for all of them
    ours = beside.ran("Carteiro", _pair(queue, ledger), beside.ours(jobs))
    assert ours
    tuned = beside.ran("Carteiro, 500 slots", _pair(queue, ledger), beside.ours(jobs, slots=500))
    peers = [
        beside.ran(name, queue.emptied(), figures)
        for name, figures in (
            ("BullMQ on Node", beside.on_node("bullmq", jobs)),
            (f"Dramatiq, {few:,} jobs", beside.in_python("dramatiq_redis", few)),
            (f"taskiq, {few:,} jobs", beside.in_python("taskiq_redis", few)),
        )
    ]
    print(f"\nRedis queue, Postgres ledger: drain of {jobs:,} no-op tasks, one worker process\n")
    beside.print_drains(ours, [tuned, *peers])
    beside.print_enqueues("Redis queue, Postgres ledger", ours, peers)


def _mails(queue: Redis, ledger: Postgres, jobs: int) -> None:
    """The whole e-mail pipeline, and the stack that many write themselves: jobs in BullMQ, rows in Postgres."""
    few = max(1000, jobs // 4000 * 1000)  # the peer adds lists of 1,000
    ours = beside.ran("Carteiro", _pair(queue, ledger), beside.ours_mails(jobs))
    assert ours
    stack = f"BullMQ on Node, outbox, log and events in Postgres, {few:,} mails"
    peer = beside.ran(stack, _pair(queue, ledger), beside.on_node("outbox", few))
    print(f"\nRedis queue, Postgres ledger: {jobs:,} e-mails with all events, one worker process\n")
    beside.print_drains(ours, [peer])
    beside.print_enqueues("Redis queue, Postgres ledger", ours, [peer])


def _latency(queue: Redis, ledger: Postgres, _: int) -> None:
    with _pair(queue, ledger) as store:
        peers = {"BullMQ": lambda: beside.waits(nullcontext(store), node="bullmq")}
        any_store.latency(", Redis queue, Postgres ledger", store, peers)


def _memory(queue: Redis, ledger: Postgres, jobs: int) -> None:
    with _pair(queue, ledger) as store:
        rows = [
            [each["name"], f"{each['bytes']:,.0f}"]
            for each in lines_of("ours.redis_memory", "--jobs", jobs, environ=store)
        ]
    print(f"\nRedis queue: memory with {jobs:,} of them\n")
    print_table(["what", "bytes each"], rows)


PARTS: dict[str, Callable[[Redis, Postgres, int], None]] = {
    "drain": _drains,
    "mails": _mails,
    "latency": _latency,
    "memory": _memory,
}
