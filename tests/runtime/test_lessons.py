"""Lessons of a worker: drawn from the store's histories in the background, applied without asking it."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from carteiro.jobs.kind import Pool
from carteiro.model import DeadReason, EventType, History, MessageId
from carteiro.policy.lessons import is_spared
from carteiro.policy.retry import PRESETS
from carteiro.runtime.lessons import Lessons
from support.builders import ACME, BRASA
from support.failing import folded
from support.working import Office, always, an_office

_TWICE = replace(PRESETS["gateway"], max_attempts=2)
_DAY = timedelta(days=1)
_FULL = "full-552@sandbox.test"


def _pool(office: Office, lessons: Lessons | None) -> Pool:
    lesson = None if lessons is None else partial(lessons.about, provider="sandbox")
    kind = office.email_kind(policy=always(_TWICE), lesson=lesson)
    return Pool("email", 100, (kind,))


async def _experienced(office: Office) -> Lessons:
    """Messages of one tenant that fail for six days."""
    for _ in range(6):
        for _ in range(100):
            await office.post(_FULL)
        await office.work(_pool(office, None))
        office.clock.advance(_DAY)
    await folded(office.backend)
    return Lessons(office.backend.failures)


async def _a_message(office: Office, *, spared: bool, tenant: str = ACME) -> MessageId:
    """A message that keeps the usual policy, or not; those of the other sort are sent."""
    while True:
        message = await office.post(_FULL, tenant=tenant)
        if is_spared(message) is spared:
            return message
        await office.backend.store.cancel([message], tenant=tenant)  # type: ignore[arg-type]


async def test_vain_retries_are_not_made() -> None:
    """The event has the evidence; messages that are spared, and those of another tenant, are tried as usual."""
    async with an_office() as office:
        lessons = await _experienced(office)
        unread = await _a_message(office, spared=False)
        await office.work(_pool(office, lessons))
        await lessons.refresh()
        ended, spared = [await _a_message(office, spared=each) for each in (False, True)]
        other = await _a_message(office, spared=False, tenant=BRASA)
        await office.work(_pool(office, lessons))

        rows = [await office.row(each) for each in (unread, ended, spared, other)]
        assert [each.attempts for each in rows] == [2, 1, 2, 2]
        assert await office.dead_for(ended) is DeadReason.MAX_ATTEMPTS_EXCEEDED
        event = await office.event(ended, EventType.FAILED)
        learned: dict[str, Any] = event.metadata["learned"]
        [group] = (await office.backend.failures.list()).rows
        assert learned == {"group": group.id, "count": 400, "sent": 0, "upperBound": 0.00951}
        for each in (unread, spared, other):
            assert "learned" not in (await office.event(each, EventType.FAILED)).metadata


class _Flaky:
    """Histories of a store that fails every second time."""

    def __init__(self) -> None:
        self.asked = 0
        self.enough = asyncio.Event()

    async def tenant_histories(self, **_: object) -> list[tuple[str, str, History]]:
        """A history of retries in vain."""
        self.asked += 1
        if self.asked > 3:
            self.enough.set()
        if self.asked % 2 == 0:
            raise OSError("the disk is gone")
        days = {day: Counter(lost=100) for day in range(6)}
        return [("group", "acme", History(days, 600))]


async def test_lessons_outlive_a_failing_store() -> None:
    """The loop goes on, and the last lessons hold meanwhile."""
    failures = _Flaky()
    lessons = Lessons(failures)  # type: ignore[arg-type]
    keeping = asyncio.create_task(lessons.keep(every=timedelta(0)))
    await failures.enough.wait()
    keeping.cancel()

    assert [*lessons._known] == [("acme", "group")]
