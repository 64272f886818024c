"""The loop that starts automatic redrives, in simulated outages of a provider: no time passes but the store's."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from carteiro.maintenance.automatic_redrives import redrive_automatically, start_automatic_redrives
from carteiro.maintenance.redrives import Redriving, redrive_once
from carteiro.model import (
    AutomaticPlan,
    Category,
    Deferred,
    Delivery,
    End,
    LeasedJob,
    MessageId,
    Outcome,
    Scope,
    State,
    Taken,
    TenantId,
    Unknown,
)
from carteiro.path.judge import doubts, judge, judge_claim
from carteiro.policy import classify
from carteiro.policy.retry import PRESETS
from carteiro.ports import Backend
from carteiro.runtime.polling import polls
from support.builders import ACME, BRASA, a_failure, a_message, tenants_named
from support.clock import StoreClock
from support.quick_store import quick_backend
from support.recovering import COOL_DOWN, PLAN, PROVIDER, died, letter_of, lost
from support.redriving import redriving
from support.steps import accepted, claimed, declare
from support.working import TOO_LONG

STEP, MINUTE = timedelta(seconds=5), timedelta(minutes=1)
OUTAGE = 20 * MINUTE
_ANSWERS: dict[str, str] = {}


class Town:
    """A store, a worker and its upkeep, driven by the clock of the store."""

    def __init__(self, backend: Backend, clock: StoreClock) -> None:
        self.backend = backend
        self.clock = clock
        self.began = clock()
        self.open: set[str] = set()
        self.down = {PROVIDER}
        self.calls: list[tuple[MessageId, str, bool]] = []
        self.in_doubt: set[MessageId] = set()  # their calls have no answer

    async def send(self, number: int, tenant: str = ACME, **changes: Any) -> list[MessageId]:
        """Accept messages."""
        made = [a_message(tenant, **changes) for _ in range(number)]
        return await accepted(self.backend.store, *made)

    async def run(
        self, length: timedelta, *, plan: AutomaticPlan = PLAN, provider: str = PROVIDER
    ) -> None:
        """Let time pass: upkeep looks, and workers send what is due."""
        ways = self.ways(plan)
        for _ in range(length // STEP):
            self.clock.advance(STEP)
            await self._work(provider)
            await start_automatic_redrives(self.backend.upkeep, self.backend.rollups, ways)
            await redrive_once(self.backend.upkeep, ways)

    def ways(self, plan: AutomaticPlan = PLAN) -> Redriving:
        """The things that redrives are advanced with."""

        async def circuits() -> set[str]:
            return self.open

        return redriving(self.backend, circuits, plan)

    async def _work(self, provider: str) -> None:
        while jobs := await claimed(self.backend.store):
            for job in jobs:
                await self._try(job, provider)

    async def _try(self, job: LeasedJob, provider: str) -> None:
        policy = PRESETS["gateway"]
        dead = judge_claim(job, policy)
        if dead is not None:
            await self.backend.store.settle([End(job.lease, dead)])
            return
        await declare(self.backend.store, job, provider=provider)
        outcome = self._answer(job, provider)
        verdict = judge(
            outcome,
            provider=provider,
            charged_before=job.charged,
            in_doubt_before=doubts(job),
            delivery=Delivery.AT_MOST_ONCE,
            policy=policy,
            expires_in=job.expires_in,
            chance=0.5,
        )
        in_doubt = int(isinstance(outcome, Unknown))
        await self.backend.store.settle([End(job.lease, verdict, in_doubt=in_doubt)])

    def _answer(self, job: LeasedJob, provider: str) -> Outcome:
        message, is_up = job.lease.job, provider not in self.down
        self.calls.append((message, provider, is_up))
        if message in self.in_doubt:
            return Unknown(classify.timeout(provider))
        return Taken(f"id-{message}") if is_up else Deferred(classify.timeout(provider))

    async def states(self, messages: Iterable[MessageId]) -> set[State]:
        """The states of messages."""
        found = [await self.backend.reading.message(each) for each in messages]
        return {each.state for each in found if each is not None}

    async def started(self) -> int:
        """The number of automatic redrives so far."""
        page = await self.backend.redrives.list(limit=1000)
        return sum(each.provider is not None for each in page.rows)


async def in_town(scene: Callable[[Town], Any]) -> None:
    """Play a scene in a new town."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        await scene(Town(backend, clock))


async def test_outage_of_twenty_minutes_is_healed_without_anybody() -> None:
    """All messages that died in it are sent after it, each once; those in doubt are not sent again."""

    async def scene(town: Town) -> None:
        doubtful, lost_ones = await town.send(3), await town.send(8, BRASA)
        town.in_doubt |= {*doubtful}
        for _ in range(OUTAGE // MINUTE):
            lost_ones += await town.send(2)
            await town.run(MINUTE)
        assert await town.states(lost_ones[:-2]) == {State.FAILED}
        assert await town.started() == 0  # while it fails, no round is spent
        town.down.clear()

        healthy = await town.send(2)
        await town.run(2 * COOL_DOWN)

        assert await town.states([*lost_ones, *healthy]) == {State.SENT}
        assert await town.states(doubtful) == {State.FAILED}
        sent = [message for message, _, is_up in town.calls if is_up]
        assert sorted(sent) == sorted([*lost_ones, *healthy])
        assert [each.id for each in (await town.backend.dead_letters.find()).rows] == doubtful[::-1]

    await in_town(scene)


async def test_installation_without_other_mail_tries_a_few() -> None:
    """Nothing else shows that the provider is back; a try that fails costs a round."""

    async def scene(town: Town) -> None:
        messages = await town.send(8)
        await town.run(OUTAGE)
        assert await town.started() == 1
        tried = len({message for message, *_ in town.calls[40:]})
        assert tried == 5
        rounds = {(await letter_of(town.backend, each)).automatic_rounds for each in messages}
        assert rounds == {1}
        town.down.clear()
        await town.run(OUTAGE)
        assert await town.started() == 2
        assert await town.states(messages) == {State.SENT}

    await in_town(scene)


async def test_recovered_provider_that_fails_again_is_not_flooded() -> None:
    """It is tried three times, five messages each; then a person decides."""

    async def scene(town: Town) -> None:
        messages = await town.send(20)
        await town.run(timedelta(hours=3))

        assert await town.started() == 3
        assert len(town.calls) == 5 * (20 + 3 * 5)
        assert await town.states(messages) == {State.FAILED}
        assert await town.backend.automatic_redrives.providers() == []

    await in_town(scene)


async def test_each_provider_recovers_by_itself() -> None:
    """Of two, one that sends again gets its messages, the other does not while its circuit is open or it fails."""

    async def scene(town: Town) -> None:
        backup = await town.send(2)
        town.down.add("backup")
        await town.run(MINUTE, provider="backup")
        main = await town.send(2)
        await town.run(MINUTE)
        town.down.remove("backup")
        town.open.add(PROVIDER)

        await town.run(2 * COOL_DOWN, provider="backup")

        assert await town.states(backup) == {State.SENT}
        assert await town.states(main) == {State.FAILED}
        assert {(await letter_of(town.backend, each)).automatic_rounds for each in main} == {0}
        town.open.clear()
        await town.run(2 * COOL_DOWN, provider="backup")  # another one of its chain is called
        assert await town.states(main) == {State.SENT}

    await in_town(scene)


async def test_one_tenant_does_not_hold_up_others() -> None:
    """Its messages fail whatever is done, and are many; those of others are sent meanwhile."""

    async def scene(town: Town) -> None:
        poison = await town.send(30)
        others = await town.send(3, BRASA)
        await town.run(MINUTE)
        town.down.clear()
        town.in_doubt |= {*poison[:5]}

        await town.run(2 * COOL_DOWN)

        assert await town.states(others) == {State.SENT}
        page = await town.backend.redrives.list(tenant=TenantId(ACME))
        assert page.rows[0].reason == "5 of 5 failed again, more than 20%."
        assert await town.states(poison[:5]) == {State.FAILED}

    await in_town(scene)


async def test_nothing_starts_while_it_is_switched_off() -> None:
    """A running one ends without another message."""

    async def scene(town: Town) -> None:
        messages = await town.send(8)
        await town.run(OUTAGE, plan=replace(PLAN, is_on=False))
        assert await town.started() == 0
        town.down.clear()
        await start_automatic_redrives(town.backend.upkeep, town.backend.rollups, town.ways())
        await town.run(MINUTE, plan=replace(PLAN, is_on=False))
        [redrive] = (await town.backend.redrives.list()).rows
        assert (redrive.state, redrive.course.redriven) == ("finished", 0)
        assert await town.states(messages) == {State.FAILED}
        off = redrive_automatically(
            town.backend.upkeep, town.backend.rollups, town.ways(replace(PLAN, is_on=False))
        )
        await off  # it does not even look

    await in_town(scene)


async def test_idle_round_asks_one_question(monkeypatch: Any) -> None:
    """However many tenants there are: no figures, no reports, no tenants."""

    async def scene(town: Town) -> None:
        asked: list[str] = []
        database = town.backend.automatic_redrives._db  # type: ignore[attr-defined]
        read = type(database).read

        async def counted(self: Any, operation: Any) -> Any:
            asked.append("read")
            return await read(self, operation)

        monkeypatch.setattr(type(database), "read", counted)
        await start_automatic_redrives(town.backend.upkeep, town.backend.rollups, town.ways())
        assert asked == ["read"]

    await in_town(scene)


async def test_loop_starts_them_until_it_is_cancelled() -> None:
    """By the process that leads, and only by it."""

    async def scene(town: Town) -> None:
        await lost(town.backend)
        town.clock.advance(COOL_DOWN)
        await town.backend.upkeep.lead("automatic redrives", holder="other", term=COOL_DOWN)
        await start_automatic_redrives(town.backend.upkeep, town.backend.rollups, town.ways())
        assert await town.started() == 0
        town.clock.advance(2 * COOL_DOWN)
        every = timedelta(milliseconds=1)
        loop = redrive_automatically(
            town.backend.upkeep, town.backend.rollups, town.ways(), every=every
        )
        task = asyncio.create_task(loop)
        try:
            async with asyncio.timeout(TOO_LONG):
                async for _ in polls(within=timedelta(hours=1)):
                    if await town.started():
                        break
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    await in_town(scene)


async def test_failures_that_a_tenant_can_make_hold_up_nobody() -> None:
    """A greylisting destination, or what an application reports by SQL, says nothing about the provider."""

    async def scene(town: Town) -> None:
        await lost(town.backend)
        town.clock.advance(COOL_DOWN)
        for _ in range(3):
            made_up = a_failure("450", category=Category.TRANSIENT_ERROR, scope=Scope.MESSAGE)
            await lost(town.backend, BRASA, verdict=died(made_up))

        await start_automatic_redrives(town.backend.upkeep, town.backend.rollups, town.ways())
        assert await town.started() == 1

    await in_town(scene)
