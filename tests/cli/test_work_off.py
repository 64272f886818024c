"""Working off what is due, once: what `carteiro process` does, on the library."""

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


async def test_no_more_than_the_limit_is_taken() -> None:
    """The rest is as if nobody had looked."""
    async with Carteiro.open("memory://") as post:
        for _ in range(5):
            await sent(post)

        assert await post.work_off(limit=2) == {State.SENT: 2}
        assert await post.backend.reading.states() == {State.SENT: 2, State.ENQUEUED: 3}
        assert await post.work_off() == {State.SENT: 3}


async def test_what_is_not_due_is_left() -> None:
    """Neither what is scheduled nor what waits for its next attempt keeps it from ending."""
    async with Carteiro.open("memory://") as post:
        later = await sent(post, scheduled_at=datetime.now(UTC) + timedelta(hours=1))
        again = await sent(post, "throttle-1@sandbox.test")

        states = await post.work_off()

        assert states == {State.RETRY_SCHEDULED: 1}
        assert (await row_of(post, later.id)).state is State.ENQUEUED
        assert (await row_of(post, again.id)).attempts == 1


async def test_what_a_cap_holds_back_comes_when_there_is_room() -> None:
    """One at a time is still all of them."""
    async with Carteiro.open("memory://") as post:
        await post.backend.tenants.define([Tenant(TenantId("acme"), cap=1)])
        for _ in range(3):
            await sent(post, "slow-0.01@sandbox.test")

        assert await post.work_off() == {State.SENT: 3}


async def test_what_is_due_in_a_moment_is_waited_for() -> None:
    """A store that says "again in a few milliseconds" has work: a slot that has just become free shows so late."""
    async with Carteiro.open("memory://") as post:
        await sent(post, scheduled_at=datetime.now(UTC) + timedelta(milliseconds=15))

        assert await post.work_off() == {State.SENT: 1}


async def test_what_waited_too_long_expires_first() -> None:
    """Where no worker stays, somebody must look."""
    async with Carteiro.open("memory://") as post:
        late = await sent(post, ttl=1)
        await asyncio.sleep(0.005)

        states = await post.work_off()

        assert states == {}
        assert (await row_of(post, late.id)).state is State.EXPIRED


async def test_it_can_be_stopped() -> None:
    """What is under way may end; nothing more is taken."""
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


async def test_the_limit_counts_e_mails_and_tasks_together() -> None:
    """Pools claim side by side otherwise; here no two of them may use up the same limit."""
    async with Carteiro.open("memory://") as post:

        @post.task("note")
        async def note() -> None: ...

        await note.send_many([{"tenant": "acme"}] * 3)
        for _ in range(3):
            await sent(post)

        first = await post.work_off(limit=2)
        rest = await post.work_off()

    assert (first, rest) == ({State.SENT: 2}, {State.SENT: 4})


async def test_each_pool_is_worked_off() -> None:
    """A pool with nothing due does not end the run of another, whose jobs come one by one."""
    async with Carteiro.open("memory://") as post:

        @post.task("note")
        async def note() -> None: ...

        await post.backend.tenants.define([Tenant(TenantId("acme"), cap=1)])
        await note.send(tenant="acme")
        for _ in range(3):
            await sent(post, "slow-0.01@sandbox.test")

        assert await post.work_off() == {State.SENT: 4}


async def test_a_store_that_cannot_be_reached_ends_the_run() -> None:
    """A timer tries again later: the run does not wait for the store to come back."""

    class Unreachable(Through):
        async def claim(self, **_: Any) -> Claimed:
            raise StoreUnavailable("the database is down")

    async with Carteiro.open("memory://") as post:
        backend = replace(post.backend, store=Unreachable(post.backend.store))
        unreachable = Carteiro(backend, post.settings, threads=post._threads)

        async with asyncio.timeout(TOO_LONG):
            with pytest.raises(StoreUnavailable, match="is down"):
                await unreachable.work_off()
