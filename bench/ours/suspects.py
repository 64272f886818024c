"""Speed of other tenants' tasks while one tenant has suspects: one worker, one window of time.

Prints the others' tasks per second, and counts: claims, claims of suspects, suspects run, seconds in which the
worker was kept for a suspect.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from carteiro import Carteiro
from carteiro.engine.slots import Quiet
from carteiro.engine.tasks import Task
from carteiro.model import Claimed, ClaimId, KindName, TenantId
from carteiro.path.judge import may_kill
from carteiro.ports import Store
from ours.shared import opened, run, tenant

KIND = KindName("call")
SUSPICIOUS = "suspicious"
LIST = 1000
_A_MOMENT = timedelta(milliseconds=1)


@dataclass
class _Numbers:
    """Events in the worker so far."""

    others: int = 0
    suspects_run: int = 0
    claims: int = 0
    claims_of_suspects: int = 0
    alone_s: float = 0.0

    def minus(self, other: "_Numbers") -> "_Numbers":
        mine, its = asdict(self), asdict(other)
        return _Numbers(**{name: mine[name] - its[name] for name in mine})


class _Counting:
    """A store that counts claims."""

    def __init__(self, store: Store, numbers: _Numbers) -> None:
        self._store = store
        self._numbers = numbers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, **asked: Any) -> Claimed:
        """As the store."""
        claimed = await self._store.claim(**asked)
        self._numbers.claims += 1
        self._numbers.claims_of_suspects += any(map(may_kill, claimed.jobs))
        return claimed


def _watch_quiet(numbers: _Numbers) -> None:
    """Add up how long the worker is kept for suspects."""
    kind: Any = Quiet
    leave_alone = kind.leave_alone

    def watched(quiet: Quiet, tenant: TenantId, since: float) -> None:
        numbers.alone_s += time.monotonic() - since
        leave_alone(quiet, tenant, since)

    kind.leave_alone = watched


def _defined(post: Carteiro, call: timedelta, numbers: _Numbers) -> Task:
    @post.task(KIND)
    async def work(*, is_suspect: bool) -> None:
        await asyncio.sleep(call.total_seconds())
        numbers.suspects_run += is_suspect
        numbers.others += not is_suspect

    return work


async def _enqueue(task: Task, names: list[str]) -> None:
    for first in range(0, len(names), LIST):
        page = names[first : first + LIST]
        calls = [{"tenant": name, "is_suspect": name == SUSPICIOUS} for name in page]
        await task.send_many(calls)


async def _make_suspects(post: Carteiro, task: Task, number: int) -> None:
    """Have them claimed twice by workers that are never heard of again."""
    await _enqueue(task, [SUSPICIOUS] * number)
    store = post.backend.store
    for turn in range(2):
        claimed = await store.claim(
            claim_id=ClaimId(f"lost-{turn}"), kinds=[KIND], limit=number, lease=_A_MOMENT
        )
        assert len(claimed.jobs) == number
        await asyncio.sleep(10 * _A_MOMENT.total_seconds())
        assert await store.reap(limit=number) == number


async def _measure(folder: Path, asked: argparse.Namespace) -> None:
    call = timedelta(milliseconds=asked.call_ms)
    seconds = asked.windows * asked.seconds
    async with opened(folder, workers={"async_task_slots": asked.slots}) as post:
        numbers = _Numbers()
        post.backend = replace(post.backend, store=_Counting(post.backend.store, numbers))
        task = _defined(post, call, numbers)
        if asked.suspects:
            await _make_suspects(post, task, asked.suspects)
        enough = int(seconds * asked.slots / call.total_seconds() * 1.1) + LIST
        await _enqueue(task, [tenant(index % asked.tenants) for index in range(enough)])
        _watch_quiet(numbers)
        print("ready", flush=True)
        sys.stdin.read()  # until all are
        working = asyncio.create_task(post.run_worker())
        for window in range(asked.windows):
            before, began = replace(numbers), time.perf_counter()
            await asyncio.sleep(asked.seconds)
            told = asdict(numbers.minus(before))
            told["others_per_second"] = told["others"] / (time.perf_counter() - began)
            print(json.dumps({"window": window} | told), flush=True)
        post.stop_now()
        await working


def main() -> None:
    """Fill a new store, then work for a while."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suspects", type=int, default=2000)
    parser.add_argument("--call-ms", type=int, default=50)
    parser.add_argument("--slots", type=int, default=5)
    parser.add_argument("--tenants", type=int, default=5, help="others, at most 20")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a window")
    parser.add_argument("--windows", type=int, default=2, help="the first one: no suspect runs yet")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(_measure(Path(folder), asked), level="warn")


if __name__ == "__main__":
    main()
