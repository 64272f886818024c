"""The cost of alerts and roll-ups: idle with many tenants, with failures everywhere, and behind a full load."""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from carteiro import Carteiro
from carteiro.config import load
from carteiro.maintenance.rollups import roll_up
from carteiro.maintenance.watch import findings
from carteiro.model import TenantId
from carteiro.policy.rollups import SPANS, weight
from figures import measured, report, say
from ours.shared import opened, run

_MINUTES = 61
_KEPT = 1000  # tenants and templates of a minute, as by default
_PAGE = 20_000  # rows in one statement
_ROUNDS = 40
_NOTES, _LIST = 1000, 100
_THRESHOLDS = load(environ={}).alerts.thresholds


def _name(number: int) -> str:
    return f"tenant-{number:05}"


def _database(post: Carteiro) -> Any:
    """Of the store: ports write no figures that did not happen."""
    rollups: Any = post.backend.rollups
    return rollups._db  # noqa: SLF001 - see above


async def _fill(post: Carteiro, tenants: int, *, failed: int) -> None:
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
            tenant = _name(number * tenants // _KEPT)
            rows.append(("minute", tenant, "", "", at, *counts))
            rows.append(("minute", tenant, "welcome", "", at, *counts))
    db = _database(post)
    for first in range(0, len(rows), _PAGE):
        page = rows[first : first + _PAGE]
        await db.write(lambda session, page=page: session.run("rollup_put", rows=page))


async def _notes(post: Carteiro, tenants: int) -> None:
    """Notes as lists of messages leave them, each of a few tenants."""
    db = _database(post)
    now = int(time.time() * 1000)

    async def add(session: Any) -> None:
        for number in range(_NOTES):
            some = [_name((number * 5 + each) % tenants) for each in range(5)]
            told = [[each, "welcome", "sandbox", 1, 3, _LIST // 5, 900, 50] for each in some]
            given = [[each, "welcome", _LIST // 5] for each in some]
            what, figures = ("sent", told) if number % 2 else ("accepted", given)
            text = orjson.dumps(figures).decode()
            await session.run("rollup_note", what=what, at=now, figures=text)

    await db.write(add)


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
    with measured("look at the queue, delete old rows", _ROUNDS) as figure:
        for _ in range(_ROUNDS):
            await reading.depths()
            await rollups.prune(minutes=settings.minutes, hours=settings.hours, limit=1000)
    report(figure)


async def _until_found(folder: Path) -> None:
    """From the last of many dead letters of a template to its finding, at the intervals in use."""
    async with opened(folder, provider="sandbox") as post:
        ports, kept = post.backend, post.settings.rollups
        upkeep = asyncio.create_task(
            roll_up(
                *(ports.upkeep, ports.rollups, ports.failures, ports.reading),
                minutes=kept.minutes,
                hours=kept.hours,
                groups=kept.failures,
                most=kept.max_tenants,
            )
        )
        await asyncio.sleep(1)  # the first fold is over
        tries = {"to": "bounce-550@sandbox.test", "subject": "Hello", "text": "…"}
        await post.send_many([{"tenant": "acme", **tries}] * (_THRESHOLDS.tenant_dead_letters + 1))
        await post.work_off()
        began = time.monotonic()
        at: dict[str, float] = {}
        while not {"TenantManyDeadLetters", "FailureRateHigh"} <= at.keys():
            for each in await findings(ports, _THRESHOLDS):
                at.setdefault(each.alert, time.monotonic() - began)
            await asyncio.sleep(0.25)
        upkeep.cancel()
        await asyncio.gather(upkeep, return_exceptions=True)
    for alert, seconds in sorted(at.items()):
        print(json.dumps({"name": f"until {alert} holds", "seconds": seconds}), flush=True)


async def _measure(tenants: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder)) as post:
            await _fill(post, tenants, failed=0)
            await _evaluate(post, "evaluate, idle")
            await _idle_rollups(post)
            await _notes(post, tenants)
            await _evaluate(post, f"evaluate, {_NOTES:,} notes wait")
            with measured("fold, a message", _NOTES * _LIST) as figure:
                while await post.backend.rollups.fold(limit=500, most=_KEPT):
                    pass
            report(figure)
            await _fill(post, tenants, failed=20)
            await _evaluate(post, "evaluate, every template fails")
    with tempfile.TemporaryDirectory() as folder:
        await _until_found(Path(folder))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=10_000)
    run(_measure(parser.parse_args().tenants))


if __name__ == "__main__":
    main()
