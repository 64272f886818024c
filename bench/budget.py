"""The cost of a message on a store, in counts that do not depend on the machine; the limits are in `budget.toml`.

Prints JSON, for accept (in lists of 100) and for work (100 slots, nothing claimed ahead), per 100 messages: Python
calls, statements and commands sent to the stores, and in the ledger rows written and bytes of the write-ahead log (of
Postgres without full-page images). A test compares them with the limits.
"""

import argparse
import cProfile
import gc
import json
import os
import pstats
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import asyncpg
import psycopg
import uvloop

from carteiro import Carteiro
from carteiro.cli.process import tune
from carteiro.engine.tasks import Task
from carteiro.observability import log

Phase: TypeAlias = Callable[[Carteiro, Task], Awaitable[None]]

MESSAGES = 1000
_LIST = 100
_TENANTS = 20
_WORKERS = {"claim_ahead_ms": 0, "email_slots": 100, "async_task_slots": 100}
_SENDS = {  # the functions that send a statement or a command; those of asyncpg are not in a profile
    "<method 'execute' of 'sqlite3.Connection' objects>",
    "<method 'executemany' of 'sqlite3.Connection' objects>",
    "<built-in method hiredis.hiredis.pack_command>",
}
_POSTGRES_LOG = """
    SELECT coalesce(sum(record_length - fpi_length), 0)::bigint
    FROM pg_get_wal_records_info(%s, pg_current_wal_flush_lsn())
    WHERE block_ref LIKE '%%/' || (SELECT oid FROM pg_database WHERE datname = current_database()) || '/%%'
"""


class Written(NamedTuple):
    """All that a ledger has written so far: rows, and the end of its log."""

    rows: int
    log: Any


async def measure(store: str, queue: str, kind: str) -> dict[str, dict[str, float]]:
    """Accept and work off messages of this kind, on an empty store."""
    return {
        name: await _counted(phase, store, queue)
        for name, phase in {"accept": _ACCEPT[kind], "work": _work}.items()
    }


async def _counted(phase: Phase, store: str, queue: str) -> dict[str, float]:
    async with Carteiro.open(store, queue=queue, provider="noop", workers=_WORKERS) as post:
        task = post.task("no-op")(_no_op)
        before = _written(store)
        profile = cProfile.Profile()
        with _asked() as asked:
            profile.enable()
            await phase(post, task)
            profile.disable()
        after = _written(store)
    if not store.startswith("sqlite"):  # a session of Postgres reports its rows when it ends
        after = _written(store)
    calls = pstats.Stats(profile)
    found = {
        "calls": calls.total_calls,  # type: ignore[attr-defined]
        "statements": _sent(calls) + len(asked),
        "rows": after.rows - before.rows,
        "log_bytes": _bytes(store, before.log, after.log),
    }
    return {name: round(100 * count / MESSAGES, 1) for name, count in found.items()}


@contextmanager
def _asked() -> Iterator[list[str]]:
    """The statements that asyncpg sends."""
    asked: list[str] = []

    def counted(name: str, *, only_bare: bool) -> Any:
        method = getattr(asyncpg.Connection, name)

        def call(connection: Any, query: str, *given: Any, **options: Any) -> Any:
            if not (only_bare and given):
                asked.append(query)
            return method(connection, query, *given, **options)

        return mock.patch.object(asyncpg.Connection, name, call)

    # `execute` sends a statement without arguments; with them it calls `_do_execute`, as all others do.
    with counted("execute", only_bare=True), counted("_do_execute", only_bare=False):
        yield asked


def _sent(stats: pstats.Stats) -> int:
    found = stats.stats.items()  # type: ignore[attr-defined]
    return sum(calls for (_, _, name), (_, calls, *_) in found if name in _SENDS)


def _written(store: str) -> Written:
    if store.startswith("sqlite"):
        ours = [each for each in gc.get_objects() if isinstance(each, sqlite3.Connection)]
        wal = Path(f"{store.removeprefix('sqlite:///')}-wal")
        return Written(sum(map(_changes, ours)), wal.stat().st_size)
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
        rows = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables"
        [[count]] = connection.execute(rows).fetchall()
        [[end]] = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
        return Written(count, end)


def _changes(connection: sqlite3.Connection) -> int:
    try:
        return connection.total_changes
    except sqlite3.ProgrammingError:  # it is closed
        return 0


def _bytes(store: str, before: Any, after: Any) -> int:
    if store.startswith("sqlite"):
        return int(after - before)
    with psycopg.connect(store) as connection:
        [[count]] = connection.execute(_POSTGRES_LOG, (before,)).fetchall()
        return int(count)


async def _accept_tasks(_post: Carteiro, task: Task) -> None:
    for first in range(0, MESSAGES, _LIST):
        await task.send_many(
            [{"tenant": _tenant(each), "body": "x" * 100} for each in range(first, first + _LIST)]
        )


async def _accept_mails(post: Carteiro, _task: Task) -> None:
    for first in range(0, MESSAGES, _LIST):
        await post.send_many([_mail(each) for each in range(first, first + _LIST)])


_ACCEPT: dict[str, Phase] = {"task": _accept_tasks, "email": _accept_mails}


async def _work(post: Carteiro, _task: Task) -> None:
    done = await post.work_off()
    if sum(done.values()) != MESSAGES:
        raise RuntimeError(f"not all messages were sent: {dict(done)}")


async def _no_op(body: str) -> None:
    """Do nothing."""


def _tenant(index: int) -> str:
    return f"tenant-{index % _TENANTS}"


def _mail(index: int) -> dict[str, str]:
    to = f"customer{index}@example.com"
    return {"tenant": _tenant(index), "to": to, "subject": f"Order {index}", "html": "<p>Sent</p>"}


def main() -> None:
    """Measure one kind of message on one store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", required=True)
    parser.add_argument("--queue", default="")
    parser.add_argument("--kind", choices=_ACCEPT, required=True)
    given = parser.parse_args()
    tune()
    with Path(os.devnull).open("wb", buffering=0) as nowhere:
        log.configure("warn", nowhere)
        print(json.dumps(uvloop.run(measure(given.store, given.queue, given.kind))))


if __name__ == "__main__":
    main()
