"""The writer of SQLite shares the event loop with everything else."""

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from carteiro.stores.sqlite.writer import Writer


class SlowWork:
    """Operations of a known duration, and the turn of the event loop in which each ran."""

    def __init__(self, path: Path) -> None:
        self.now = 0.0
        self.turn = 0
        self.turns: list[int] = []
        self.order: list[int] = []
        self.writer = Writer(
            path,
            busy_timeout_ms=100,
            has_work=lambda _: False,
            changed_elsewhere=lambda: None,
            clock=lambda: self.now,
        )

    async def live(self) -> None:
        """Count turns of the event loop."""
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    async def do(self, number: int, seconds: float) -> int:
        """Take this long; an operation without a duration fails."""

        def operation(_: sqlite3.Connection) -> int:
            self.now += seconds
            self.turns.append(self.turn)
            self.order.append(number)
            return number // int(bool(seconds))

        return await self.writer.do(operation)


@pytest.mark.parametrize(("seconds", "together"), [(0.004, 3), (0.020, 1), (0.00001, 100)])
async def test_event_loop_runs_after_ten_milliseconds_of_operations(
    tmp_path: Path, seconds: float, together: int
) -> None:
    """Operations are committed together until then; all are done, in order."""
    work = SlowWork(tmp_path / "post.db")
    await work.writer.start()
    others = asyncio.create_task(work.live())

    done = await asyncio.gather(*(work.do(number, seconds) for number in range(100)))

    others.cancel()
    await work.writer.stop()
    assert done == work.order == list(range(100))
    assert max(Counter(work.turns).values()) == together


async def test_failure_of_one_operation_stays_its_own_in_any_transaction(tmp_path: Path) -> None:
    """Also when the others are left for later transactions."""
    work = SlowWork(tmp_path / "post.db")
    await work.writer.start()

    done = await asyncio.gather(
        *(work.do(number, 0.0 if number == 4 else 0.004) for number in range(9)),
        return_exceptions=True,
    )

    await work.writer.stop()
    assert [type(each) for each in done] == [int] * 4 + [ZeroDivisionError] + [int] * 4
    assert work.order == list(range(9))
