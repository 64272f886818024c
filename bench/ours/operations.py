"""The cost of alerts and roll-ups: idle with many tenants, with failures everywhere, and behind a full load."""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import asyncpg
import orjson

from carteiro import Carteiro
from carteiro.config import load
from carteiro.maintenance.rollups import fold_all
from carteiro.maintenance.watch import findings
from carteiro.model import TenantId
from carteiro.policy.failures import HOUR_MS, MOST_GROUPS
from carteiro.policy.rollups import SPANS, weight
from figures import measured, report, say
from ours.shared import TENANTS, opened, run

_MINUTES = 61
_KEPT = 1000  # tenants and templates of a minute, as by default
_PAGE = 20_000  # rows in one statement
_ROUNDS = 40
_LIST = 1000
_PATIENCE_S = 90
_THRESHOLDS = load(environ={}).alerts.thresholds


def _name(number: int) -> str:
    return f"tenant-{number:05}"


def _database(post: Carteiro) -> Any:
    """Of the store: ports write no figures that did not happen."""
    rollups: Any = post.backend.rollups
    return rollups._db  # noqa: SLF001 - see above


async def fill(post: Carteiro, tenants: int, *, failed: int) -> None:
    """The rows of the last hour and of the same hour yesterday: as many tenants and templates as a minute keeps."""
    await post.backend.tenants.ensure([TenantId(_name(each)) for each in range(tenants)])
    minute = SPANS["minute"]
    now = int(time.time() * 1000)
    figures = Counter(
        {"accepted": 10, "sent": 10, "sent.1": 10, "ended.1": 10 + failed, "delay.3": 10}
        | {"failed": failed, "error.PERMANENT_ERROR.550": failed, "max_queue_age_ms": 5}
    )
    text = orjson.dumps(+figures).decode()
    counts = (weight(figures), figures["sent"], failed, text)
    rows: list[tuple[object, ...]] = []
    for back in [*range(_MINUTES), *range(1440, 1440 + _MINUTES)]:
        at = (now // minute - back) * minute
        rows.append(("minute", "", "", "", at, *counts))
        for number in range(_KEPT if back < _MINUTES else 0):
            tenant = _name((number * tenants // _KEPT + back) % tenants)  # in time, all of them
            rows.append(("minute", tenant, "", "", at, *counts))
            rows.append(("minute", tenant, "welcome", "", at, *counts))
    db = _database(post)
    for first in range(0, len(rows), _PAGE):
        page = rows[first : first + _PAGE]
        await db.write(lambda session, page=page: session.run("rollup_put", rows=page))
    if url := os.environ.get("BENCH_STORE"):  # as the server does soon, in its own time
        connection = await asyncpg.connect(url)
        await connection.execute("ANALYZE")
        await connection.close()


async def fill_groups(post: Carteiro) -> None:
    """As many failure groups as are kept, each of an hour."""
    now = int(time.time() * 1000)
    hour = now - now % HOUR_MS
    said = ("sandbox", "rule", "", "mailbox full", "452", "QUOTA_ERROR", "recipient", "open")
    groups = [(f"{each:012x}", *said, now, now, now, None, 9, 9) for each in range(MOST_GROUPS)]
    counts = [
        (each[0], hour, tenant, 9, 9, now, now, "[]", 0, "")
        for each in groups
        for tenant in ("", _name(0))
    ]
    for statement, rows in (("failure_groups_put", groups), ("failure_counts_put", counts)):
        await _database(post).write(
            lambda session, statement=statement, rows=rows: session.run(statement, rows=rows)
        )


async def _evaluate(post: Carteiro, name: str) -> None:
    with measured(name, _ROUNDS) as figure:
        for _ in range(_ROUNDS):
            found = await findings(post.backend, _THRESHOLDS)
    report(figure)
    say(f"ours: {name}: {len(found)} findings")


async def _idle_rollups(post: Carteiro) -> None:
    rollups, reading = post.backend.rollups, post.backend.reading
    settings = post.settings.rollups
    with measured("fold, nothing to add up", _ROUNDS) as figure:
        for _ in range(_ROUNDS):
            await rollups.fold(limit=500, most=settings.max_tenants)
    report(figure)
    with measured("look at the queue, delete old rows and groups", _ROUNDS) as figure:
        for _ in range(_ROUNDS):
            await reading.depths()
            await post.backend.failures.prune(older=settings.failures, limit=1000)
            await rollups.prune(minutes=settings.minutes, hours=settings.hours, limit=1000)
    report(figure)


async def _load(post: Carteiro, tenants: int, mails: int) -> None:
    """Messages of which every third fails, as fast as they go; then their notes are added up."""
    to = ("bounce-550@sandbox.test", "ana@example.com", "bia@example.com")
    new = [
        {"tenant": _name(each % tenants), "to": to[each % 3], "subject": "Hello", "text": "…"}
        for each in range(mails)
    ]
    for first in range(0, mails, _LIST):
        await post.send_many(new[first : first + _LIST])
    with measured(f"load of {tenants:,} tenants", mails) as figure:
        await post.work_off()
    report(figure)
    with measured(f"added up, load of {tenants:,} tenants", mails) as figure:
        await fold_all(post.backend.rollups, most=_KEPT)
    report(figure)


async def _until_told(post: Carteiro) -> None:
    """From many dead letters of a tenant until the notices are recorded, with a worker as it runs."""
    alerts = {"TenantManyDeadLetters", "FailureRateHigh"}
    worker = asyncio.create_task(post.run_worker())
    await asyncio.sleep(1)  # the first looks are over
    mail = {"tenant": "acme", "to": "bounce-550@sandbox.test", "subject": "Hello", "text": "…"}
    await post.send_many([mail] * (_THRESHOLDS.tenant_dead_letters + 1))
    began = time.monotonic()
    async with asyncio.timeout(_PATIENCE_S):
        while alerts:
            await asyncio.sleep(0.25)
            told = {each.name for each in (await post.backend.alerts.list()).rows if each.told}
            for each in sorted(alerts & told):
                line = {"name": f"until the notice of {each}", "seconds": time.monotonic() - began}
                print(json.dumps(line), flush=True)
            alerts -= told
    post.stop()
    await worker


async def _measure(tenants: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder), provider="sandbox") as post:
            await _until_told(post)
            await fold_all(post.backend.rollups, most=_KEPT)
            await fill(post, tenants, failed=0)
            await fill_groups(post)
            await _evaluate(post, "evaluate, idle")
            await _idle_rollups(post)
            for loaded in (TENANTS, tenants):
                await _load(post, loaded, tenants)
            await fill(post, tenants, failed=20)
            await _evaluate(post, "evaluate, every template fails")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=10_000)
    run(_measure(parser.parse_args().tenants))


if __name__ == "__main__":
    main()
