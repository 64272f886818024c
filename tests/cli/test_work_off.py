"""One-shot processing of due messages: `carteiro process`, through the library."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.errors import StoreUnavailable
from carteiro.model import Accepted, Claimed, Replayed, State, Tenant, TenantId
from support.library import row_of
from support.working import TOO_LONG, Through


async def sent(
    post: Carteiro, to: str = "ok@sandbox.test", **fields: object
) -> Accepted | Replayed:
    """An e-mail that waits."""
    return await post.send(tenant="acme", to=to, subject="Bom dia", text="Olá", **fields)


async def test_limit_bounds_the_processed_messages() -> None:
    """The rest is not changed."""
    async with Carteiro.open("memory://") as post:
        for _ in range(5):
            await sent(post)

        assert await post.work_off(limit=2) == {State.SENT: 2}
        assert await post.backend.reading.states() == {State.SENT: 2, State.ENQUEUED: 3}
        assert await post.work_off() == {State.SENT: 3}


async def test_messages_that_are_not_due_stay() -> None:
    """Neither a schedule nor a retry delay keeps it from ending."""
    async with Carteiro.open("memory://") as post:
        later = await sent(post, scheduled_at=datetime.now(UTC) + timedelta(hours=1))
        again = await sent(post, "throttle-1@sandbox.test")

        states = await post.work_off()

        assert states == {State.RETRY_SCHEDULED: 1}
        assert (await row_of(post, later.id)).state is State.ENQUEUED
        assert (await row_of(post, again.id)).attempts == 1


async def test_messages_held_by_a_concurrency_limit_are_processed() -> None:
    """One at a time is still all of them."""
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([Tenant(TenantId("acme"), cap=1)])
        for _ in range(3):
            await sent(post, "slow-0.01@sandbox.test")

        assert await post.work_off() == {State.SENT: 3}


async def test_message_due_in_a_moment_is_waited_for() -> None:
    """A store that answers "again in a few milliseconds" has work: a freed slot shows late."""
    async with Carteiro.open("memory://") as post:
        await sent(post, scheduled_at=datetime.now(UTC) + timedelta(milliseconds=15))

        assert await post.work_off() == {State.SENT: 1}


async def test_overdue_messages_expire_first() -> None:
    """Without a permanent worker, nobody else expires them."""
    async with Carteiro.open("memory://") as post:
        late = await sent(post, ttl=1)
        await asyncio.sleep(0.005)

        states = await post.work_off()

        assert states == {}
        assert (await row_of(post, late.id)).state is State.EXPIRED


async def test_run_can_be_stopped() -> None:
    """Messages in flight may end; no more are claimed."""
    async with Carteiro.open("memory://", workers={"email_slots": 1}) as post:
        for _ in range(3):
            await sent(post, "slow-0.05@sandbox.test")
        working = asyncio.create_task(post.work_off())
        async with asyncio.timeout(TOO_LONG):
            while State.SENT_ATTEMPT not in await post.backend.reading.states():
                await asyncio.sleep(0.001)
            post.stop()
            states = await working

        assert states == {State.SENT: 1}


async def test_limit_counts_emails_and_tasks_together() -> None:
    """Pools claim concurrently, but here no two of them may use up the same limit."""
    async with Carteiro.open("memory://") as post:

        @post.task("note")
        async def note() -> None: ...

        await note.send_many([{"tenant": "acme"}] * 3)
        for _ in range(3):
            await sent(post)

        first = await post.work_off(limit=2)
        rest = await post.work_off()

    assert (first, rest) == ({State.SENT: 2}, {State.SENT: 4})


async def test_each_pool_is_processed() -> None:
    """A pool with nothing due does not end the run of another, whose jobs come one by one."""
    async with Carteiro.open("memory://") as post:

        @post.task("note")
        async def note() -> None: ...

        await post.backend.tenants.define([Tenant(TenantId("acme"), cap=1)])
        await note.send(tenant="acme")
        for _ in range(3):
            await sent(post, "slow-0.01@sandbox.test")

        assert await post.work_off() == {State.SENT: 4}


async def test_unreachable_store_ends_the_run() -> None:
    """A timer starts the next run later; this one does not wait for the store."""

    class Unreachable(Through):
        async def claim(self, **_: Any) -> Claimed:
            raise StoreUnavailable("the database is down")

    async with Carteiro.open("memory://") as post:
        backend = replace(post.backend, store=Unreachable(post.backend.store))
        unreachable = Carteiro(backend, post.settings, threads=post._threads)

        async with asyncio.timeout(TOO_LONG):
            with pytest.raises(StoreUnavailable, match="is down"):
                await unreachable.work_off()
