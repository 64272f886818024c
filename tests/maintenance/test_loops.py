"""The maintenance loops: their work, their leader, and that no error ends them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from carteiro.errors import StoreUnavailable
from carteiro.maintenance import loop
from carteiro.maintenance import reap as reap_module
from carteiro.maintenance.expire import expire
from carteiro.maintenance.prune import prune
from carteiro.maintenance.reap import reap
from carteiro.model import DeadReason, IdempotencyKey, State
from carteiro.observability.metrics import Tally
from carteiro.ports.upkeep import Pruned, Upkeep
from support.builders import a_message, retry, sent
from support.clock import past
from support.steps import LEASE, accepted, attempted, claimed
from support.working import LONG, TOO_LONG, Office, Through, an_office, logged

SOON = timedelta(milliseconds=1)
TERM = timedelta(seconds=10)
DAY = timedelta(days=1)


class Watched:
    """The upkeep of a store: counts calls, and may fail first."""

    def __init__(
        self, upkeep: Upkeep, *, failures: int = 0, error: type[Exception] = StoreUnavailable
    ) -> None:
        self.upkeep = upkeep
        self.failures = failures
        self.error = error
        self.holders: list[str] = []
        self.terms: list[timedelta] = []
        self.pages: list[object] = []
        self.changed = asyncio.Event()

    def _fail_first(self) -> None:
        self.changed.set()
        if self.failures:
            self.failures -= 1
            raise self.error("the disk is busy")

    def _done(self, page: object) -> None:
        self.pages.append(page)
        self.changed.set()

    async def expire(self, *, limit: int) -> int:
        """Fail, or pass it on."""
        self._fail_first()
        expired = await self.upkeep.expire(limit=limit)
        self._done(limit)
        return expired

    async def prune(self, **asked: Any) -> Pruned:
        """Fail, or pass it on, two messages a page."""
        self._fail_first()
        pruned = await self.upkeep.prune(**asked, limit=2)
        self._done(asked["after"])
        return pruned

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        self.holders.append(holder)
        self.terms.append(term)
        self.changed.set()
        return await self.upkeep.lead(name, holder=holder, term=term)

    async def last_seen(self) -> datetime | None:
        return await self.upkeep.last_seen()

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:
        await self.upkeep.backup(target, progress)

    async def compact(self) -> int:
        return await self.upkeep.compact()

    async def seen(self, number: int) -> None:
        """Wait until this many pages were done."""
        async with asyncio.timeout(TOO_LONG):
            while len(self.pages) < number:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator["asyncio.Task[None]"]:
    """Run a loop for the time of a block; it must not end by itself."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        assert not task.done(), task
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def finished(office: Office, number: int) -> None:
    """This many messages, sent a day ago."""
    for _ in range(number):
        await office.post()
        await attempted(office.backend.store, sent())
    office.clock.advance(DAY)


# --- expire -----------------------------------------------------------------------------------


async def test_expire_ends_overdue_messages() -> None:
    """Page after page while there is more, then it sleeps; the log has the number."""
    async with an_office() as office:
        messages = [await office.post(ttl=1000) for _ in range(501)]
        office.clock.advance(timedelta(seconds=1))
        upkeep = Watched(office.backend.upkeep)
        with logged() as lines:
            async with running(expire(upkeep, Tally(), every=LONG)):
                await upkeep.seen(2)

        assert await office.backend.reading.states() == {State.EXPIRED: 501}
        assert await office.dead_for(messages[0]) is DeadReason.EXPIRED
        assert [line["count"] for line in lines] == [500, 1]
        assert {line["task"] for line in lines} == {"expire"}


async def test_round_without_changes_logs_nothing() -> None:
    """An idle process has an idle log."""
    async with an_office() as office:
        upkeep = Watched(office.backend.upkeep)
        with logged() as lines:
            async with running(expire(upkeep, Tally(), every=SOON)):
                await upkeep.seen(3)

        assert lines == []


# --- prune ------------------------------------------------------------------------------------


async def test_prune_walks_the_whole_ledger_and_starts_again() -> None:
    """Each page starts where the last one ended, each pass at the beginning."""
    async with an_office() as office:
        await finished(office, 5)
        upkeep = Watched(office.backend.upkeep)
        with logged() as lines:
            async with running(prune(upkeep, bodies=None, histories=DAY, every=SOON)):
                await upkeep.seen(4)

        assert await office.backend.reading.states() == {}
        first, second, third, again = upkeep.pages[:4]
        assert first is again is None
        assert second != third
        assert sum(line["count"] for line in lines) == 5


async def test_prune_deletes_bodies_and_keeps_histories() -> None:
    """Each has its own retention; a waiting message keeps its body."""
    async with an_office() as office:
        await finished(office, 1)
        waiting = await office.post()
        upkeep = Watched(office.backend.upkeep)
        async with running(prune(upkeep, bodies=DAY, histories=None, every=SOON)):
            await upkeep.seen(2)

        assert await office.backend.reading.states() == {State.SENT: 1, State.ENQUEUED: 1}
        assert (await office.row(waiting)).content is not None


async def test_only_idempotency_keys_are_pruned_without_a_retention() -> None:
    """Messages are kept whole; a full page of keys is followed by the next at once."""
    async with an_office() as office:
        keys = [IdempotencyKey(f"key-{number}", "digest") for number in range(3)]
        await accepted(office.backend.store, *(a_message(key=key) for key in keys))
        office.clock.advance(DAY)
        upkeep = Watched(office.backend.upkeep)
        with logged() as lines:
            async with running(prune(upkeep, bodies=None, histories=None, every=LONG)):
                await upkeep.seen(2)

        assert [line["count"] for line in lines] == [2, 1]
        assert await office.backend.reading.states() == {State.ENQUEUED: 3}


# --- reap -------------------------------------------------------------------------------------


async def test_reap_takes_back_expired_leases() -> None:
    """Also of kinds that no worker claims right now; page after page."""

    class Reaped(Through):
        counts: list[int]
        done: asyncio.Event

        async def reap(self, *, limit: int) -> int:
            self.counts.append(await super().reap(limit=limit))
            if len(self.counts) == 2:
                self.done.set()
            return self.counts[-1]

    async with an_office() as office:
        for _ in range(501):
            await office.post()
        while await claimed(office.backend.store):
            pass
        office.clock.advance(past(LEASE))
        store = Reaped(office.backend.store)
        store.counts, store.done = [], asyncio.Event()
        with logged() as lines:
            async with running(reap(store, every=LONG)):
                await asyncio.wait_for(store.done.wait(), TOO_LONG)
                await asyncio.sleep(0)

        assert store.counts == [500, 1]
        assert [(line["task"], line["count"]) for line in lines] == [("reap", 500), ("reap", 1)]
        assert len(await claimed(office.backend.store, limit=10)) == 10


@pytest.mark.parametrize("error", [StoreUnavailable, ZeroDivisionError])
async def test_failure_does_not_end_reap(error: type[Exception]) -> None:
    """It is logged, and the next round tries again."""

    class Away(Through):
        calls = 0
        again = asyncio.Event()

        async def reap(self, *, limit: int) -> int:
            self.calls += 1
            if self.calls > 2:
                self.again.set()
                return await super().reap(limit=limit)
            raise error("the disk is busy")

    async with an_office() as office:
        store = Away(office.backend.store)
        store.again = asyncio.Event()
        with logged() as lines:
            async with running(reap(store, every=SOON)):
                await asyncio.wait_for(store.again.wait(), TOO_LONG)

        assert [line["event"] for line in lines] == ["upkeep.failed", "upkeep.failed"]
        assert {line["errorType"] for line in lines} == {error.__name__}


# --- the leader -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [StoreUnavailable, ZeroDivisionError])
async def test_failure_does_not_end_a_led_loop(error: type[Exception]) -> None:
    """It is logged, and the next round tries again."""
    async with an_office() as office:
        upkeep = Watched(office.backend.upkeep, failures=2, error=error)
        with logged() as lines:
            async with running(expire(upkeep, Tally(), every=SOON)):
                await upkeep.seen(1)

        assert [line["event"] for line in lines] == ["upkeep.failed", "upkeep.failed"]
        assert {line["task"] for line in lines} == {"expire"}


async def test_other_processes_do_nothing_until_the_lead_passes_on() -> None:
    """The lead of a process that died expires."""
    async with an_office() as office:
        await office.post(ttl=1000)
        office.clock.advance(timedelta(seconds=1))
        await office.backend.upkeep.lead("expire", holder="another process", term=TERM)
        upkeep = Watched(office.backend.upkeep)
        async with running(expire(upkeep, Tally(), every=SOON)):
            async with asyncio.timeout(TOO_LONG):
                while len(upkeep.holders) < 3:
                    upkeep.changed.clear()
                    await upkeep.changed.wait()
            assert upkeep.pages == []
            office.clock.advance(TERM)
            await upkeep.seen(1)

        assert await office.backend.reading.states() == {State.EXPIRED: 1}


async def test_lead_lasts_longer_than_the_sleep_of_its_process() -> None:
    """So the lead stays in one process while it lives."""
    async with an_office() as office:
        upkeep = Watched(office.backend.upkeep)
        async with running(expire(upkeep, Tally(), every=SOON)):
            await upkeep.seen(2)

        assert set(upkeep.holders) == {loop.PROCESS}
        assert min(upkeep.terms) > SOON


async def test_retry_in_the_queue_is_not_touched_by_maintenance() -> None:
    """It is neither expired nor pruned before its time."""
    async with an_office() as office:
        message = await office.post()
        await attempted(office.backend.store, retry(timedelta(hours=1)))
        upkeep = Watched(office.backend.upkeep)
        async with running(expire(upkeep, Tally(), every=SOON)):
            await upkeep.seen(1)

        assert await office.state(message) is State.RETRY_SCHEDULED


async def test_reap_takes_nothing_back_after_a_store_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers were cut off for the same time: they can extend their leases before the next round."""
    monkeypatch.setattr(reap_module, "_GRACE", SOON)

    class Failing(Through):
        limits: list[int]
        done: asyncio.Event

        async def reap(self, *, limit: int) -> int:
            self.limits.append(limit)
            if len(self.limits) in {2, 3}:
                raise StoreUnavailable("the disk is busy")
            if len(self.limits) == 6:
                self.done.set()
            return await super().reap(limit=limit)

    async with an_office() as office:
        store = Failing(office.backend.store)
        store.limits, store.done = [], asyncio.Event()
        async with running(reap(store, every=SOON)):
            await asyncio.wait_for(store.done.wait(), TOO_LONG)

        assert store.limits[:6] == [500, 500, 0, 0, 500, 500]
