"""No process delivers mail to the sandbox that the installation sends through another provider."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.errors import ConfigError, StoreUnavailable
from carteiro.model import EMAIL, ClaimId, KindName, LeasedJob, State
from carteiro.ports import Marks
from carteiro.providers import choice
from support.working import TOO_LONG

_ELSEWHERE = r"provider is not set here, but this installation sends through smtp"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """The address of a store that several processes share."""
    return f"sqlite:///{tmp_path}/post.db"


TICK = KindName("tick")


@asynccontextmanager
async def opened(store: str, **settings: Any) -> AsyncIterator[Carteiro]:
    """A process of the installation, with waiting mail."""
    async with Carteiro.open(store, **settings) as post:
        await post.send(tenant="acme", to="ana@example.com", subject="Bom dia", text="Olá")
        yield post


async def works(post: Carteiro) -> None:
    """Run a worker."""
    async with asyncio.timeout(TOO_LONG):
        await post.run_worker()


async def works_off(post: Carteiro) -> None:
    """Run as ``carteiro process`` does."""
    await post.work_off()


async def claimed(post: Carteiro) -> Sequence[LeasedJob]:
    """Claim the mail that waits."""
    found = await post.backend.store.claim(
        claim_id=ClaimId("a claim"), kinds=[EMAIL], limit=10, lease=timedelta(minutes=1)
    )
    return found.jobs


class FailingMarks:
    """The first answer is there, the others are not."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._asked = 0
        self.put = marks.put

    async def find(self, name: str) -> str | None:
        """Answer once."""
        self._asked += 1
        if self._asked > 1:
            raise StoreUnavailable("away")
        return await self._marks.find(name)


@pytest.mark.parametrize("work", [works, works_off])
async def test_unset_provider_sends_nothing_where_another_was_set(
    store: str, work: Callable[[Carteiro], Awaitable[None]]
) -> None:
    """A process without its settings, as from cron, would mark real mail as SENT and deliver it to nobody."""
    async with opened(store, provider="smtp"):
        pass

    async with opened(store) as forgetful:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await work(forgetful)

        assert set(await forgetful.backend.reading.states()) == {State.ENQUEUED}
        assert await forgetful.backend.inbox.list() == []


@pytest.mark.parametrize("routes", ["tenant_routes", "type_routes"])
async def test_unset_provider_sends_nothing_where_a_route_leads_elsewhere(
    store: str, routes: str
) -> None:
    """The sandbox for most, a real provider for one tenant or type: a process without settings has no routes."""
    async with opened(store, provider="sandbox", **{routes: {"acme": "smtp"}}):
        pass

    async with opened(store) as forgetful:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await forgetful.work_off()


async def test_running_worker_stops_when_another_provider_is_set(store: str) -> None:
    """The sandbox was tried first, and is still running when the real provider comes."""
    async with Carteiro.open(store) as first:
        working = asyncio.create_task(works(first))
        async with Carteiro.open(store, provider="smtp"):
            with pytest.raises(ConfigError, match=_ELSEWHERE):
                await working


async def test_running_worker_gives_back_mail_of_another_provider(store: str) -> None:
    """A mail that was accepted after the real provider was set, and claimed at once."""
    async with opened(store) as first:
        working = asyncio.create_task(works(first))
        while await first.backend.reading.states() != {State.SENT: 1}:
            await asyncio.sleep(0.01)
        async with opened(store, provider="smtp") as second:
            with pytest.raises(ConfigError, match=_ELSEWHERE):
                await working

            assert await second.backend.reading.states() == {State.SENT: 1, State.ENQUEUED: 1}
            [job] = await claimed(second)
        assert (job.claims, job.attempts) == (1, 0)
        assert len(await first.backend.inbox.list()) == 1


async def test_one_shot_run_gives_back_mail_of_another_provider(store: str) -> None:
    """The real provider is set after the run has begun."""
    async with Carteiro.open(store) as first:

        @first.task("switch")
        async def switch() -> None:
            async with opened(store, provider="smtp"):
                pass

        await switch.send(tenant="acme")
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await first.work_off()

        assert await first.backend.reading.states() == {State.SENT: 1, State.ENQUEUED: 1}
        assert await first.backend.inbox.list() == []


async def test_claim_that_cannot_be_checked_is_undone(store: str) -> None:
    """The store fails between the claim and the check: nothing is sent, and the job is not suspected."""
    async with opened(store) as post:
        sound = post.backend
        post.backend = replace(sound, marks=FailingMarks(sound.marks))
        with pytest.raises(StoreUnavailable):
            await post.work_off()

        [job] = await claimed(post)
        assert (job.claims, job.attempts) == (1, 0)


async def test_claim_of_tasks_alone_is_not_checked(store: str) -> None:
    """They start a round trip sooner: a task has no provider."""
    async with Carteiro.open(store) as post:

        @post.task(TICK)
        async def tick() -> None:
            """Do nothing."""

        await tick.send(tenant="acme")
        marks = FailingMarks(post.backend.marks)
        await marks.find("provider")  # from now on it fails
        checked = choice.checked_store(post.backend.store, post.settings, marks, refuse=print)
        found = await checked.claim(
            claim_id=ClaimId("a claim"), kinds=[TICK], limit=10, lease=timedelta(minutes=1)
        )

    assert [job.kind for job in found.jobs] == [TICK]


async def test_worker_with_a_provider_pays_for_no_check(store: str) -> None:
    """It uses the store itself."""
    async with Carteiro.open(store, provider="smtp") as post:
        ports = post.backend
        checked = choice.checked_store(ports.store, post.settings, ports.marks, refuse=print)
        assert checked is ports.store


async def test_unset_provider_sends_to_the_sandbox_where_nothing_was_set(store: str) -> None:
    """A first trial needs no settings."""
    async with opened(store) as post:
        assert await post.work_off() == {State.SENT: 1}


async def test_sandbox_is_used_where_it_is_set(store: str) -> None:
    """An explicit setting counts, for that process."""
    async with opened(store, provider="smtp"):
        pass
    async with opened(store, provider="sandbox") as meant:
        assert await meant.work_off() == {State.SENT: 2}


@pytest.mark.parametrize("trial", ["sandbox", "noop"])
async def test_trial_of_the_sandbox_does_not_undo_the_choice_of_others(
    store: str, trial: str
) -> None:
    """One process sends through a relay, another was tried with the sandbox: a third without settings sends nothing."""
    async with opened(store, provider="smtp"):
        async with Carteiro.open(store, provider=trial):
            pass

        async with opened(store) as unset:
            with pytest.raises(ConfigError, match=_ELSEWHERE):
                await unset.work_off()


async def test_last_of_several_real_providers_is_remembered(store: str) -> None:
    """The installation has moved to another one."""
    for provider in ("sandbox", "smtp", "ses:sa-east-1"):
        async with Carteiro.open(store, provider=provider):
            pass

    async with opened(store) as unset:
        with pytest.raises(ConfigError, match="sends through ses:sa-east-1"):
            await unset.work_off()


@pytest.mark.parametrize("routes", ["tenant_routes", "type_routes"])
async def test_routes_to_others_need_a_default_provider(store: str, routes: str) -> None:
    """Mail without a route would go to the sandbox by accident."""
    async with opened(store, **{routes: {"demo": "sandbox", "brasa": "smtp"}}) as post:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await post.work_off()


async def test_route_to_the_sandbox_does_not_change_the_default(store: str) -> None:
    """One tenant experiments; the mail of the others still goes through the configured provider."""
    async with opened(store, provider="smtp"):
        pass
    async with opened(store, tenant_routes={"demo": "sandbox"}) as post:
        with pytest.raises(ConfigError, match=_ELSEWHERE):
            await post.work_off()
