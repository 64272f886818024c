"""Redrives: time of a plan, of a start and of one page, with many dead letters of 1,000 tenants."""

import argparse
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg

from carteiro.dead_letters.redrive import plan_redrive, start_redrive
from carteiro.model import DeadFilter, Ramp, TenantId
from ours.shared import opened, run

_TENANTS = 1000
_FILL = """
INSERT INTO {schema}messages (
    no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, to_address, due_at, created_at
)
SELECT
    n, {identity}, 'tenant-' || (n % {tenants}), 'email:send', {true}, 'at_least_once', 5, 86400000, 'request',
    'user-' || n || '@example.com', 1800000000000 + n, 1800000000000 + n
FROM {all};
INSERT INTO {schema}dead_letters (
    message_id, {more}tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms,
    failure_group
)
SELECT
    {identity}, {numbers}'tenant-' || (n % {tenants}), 'email:send', 'permanent_error',
    '{{"code": "550", "category": "PERMANENT_ERROR", "retryable": false, "scope": "message", "reason": "No such user",
    "rule": "smtp.550", "original_code": null}}',
    1, 1800000000000 + n, 1800000000000, 1800000000000 + n, 604800000, 'group-' || (n % 50)
FROM {series}
"""
_SQLITE = {
    "schema": "",
    "true": "1",
    "more": "",
    "numbers": "",
    "identity": "printf('01900000-0000-7000-8000-%012x', n)",
    "series": "(WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last})"
    " SELECT n FROM s)",
}
_POSTGRES = {
    "schema": "carteiro.",
    "true": "true",
    "more": "message_no, code, category, said, ",
    "numbers": "n, '550', 'PERMANENT_ERROR', '550' || E'\\nno such user\\nuser-' || n || '@example.com', ",
    "identity": "'01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0')",
    "series": "generate_series({first}, {last}) AS n",
}


async def fill(
    folder: Path, letters: int, *, messages: int = 0, tenants: int = _TENANTS, first: int = 1
) -> None:
    """Messages, and dead letters of the first ones; ``first`` is the number of the first message."""
    url = os.environ.get("BENCH_STORE", "").format(name=folder.name)
    parts: dict[str, Any] = {"tenants": tenants, **(_POSTGRES if url else _SQLITE)}
    series = parts["series"]
    parts["all"] = series.format(first=first, last=first - 1 + max(messages, letters))
    parts["series"] = series.format(first=first, last=first - 1 + letters)
    if not url:
        with closing(sqlite3.connect(folder / "carteiro.db")) as db, db:
            db.executescript(_FILL.format(**parts))
        return
    connection = await asyncpg.connect(url)
    await connection.execute(_FILL.format(**parts))
    await connection.execute("ANALYZE carteiro.dead_letters")
    await connection.execute("ANALYZE carteiro.messages")
    await connection.close()


async def _measure(letters: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with opened(folder) as post:
            await fill(folder, letters)
            everything, mine = DeadFilter(), DeadFilter(tenant=TenantId("tenant-7"))
            backend = post.backend
            await _timed("plan, all tenants", lambda: plan_redrive(backend, everything))
            await _timed("plan, one tenant", lambda: plan_redrive(backend, mine))
            searched = replace(everything, text="no such")
            await _timed("plan, by text", lambda: plan_redrive(backend, searched))
            addressed = replace(everything, text="@example.org")
            await _timed("plan, by text, none", lambda: plan_redrive(backend, addressed))
            ramp = Ramp()
            await _timed("start", lambda: start_redrive(backend, everything, by="bench", ramp=ramp))


async def _timed(name: str, work: Callable[[], Awaitable[Any]]) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    answer = await work()
    took = {
        "ms": 1000 * (time.perf_counter() - began),
        "cpu_ms": 1000 * (time.process_time() - cpu),
    }
    print(json.dumps({"name": name, "total": answer.total} | took), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=100_000)
    run(_measure(parser.parse_args().letters))
