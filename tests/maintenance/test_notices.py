"""The loops of alerts: what holds moves them, and each channel gets the notices, whatever another one does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from carteiro.errors import NotDelivered
from carteiro.maintenance.alerts import evaluate_alerts
from carteiro.maintenance.notices import NoticeSender, send_notices
from carteiro.model import TenantId
from carteiro.model.alerts import Finding, Notice
from carteiro.policy import notices
from carteiro.ports import Backend
from support.alerting import FULL, RULES, full, moved, often, rules, states
from support.builders import ACME, tenants_named
from support.quick_store import quick_backend
from support.working import TOO_LONG

SOON = timedelta(milliseconds=1)
SYSTEM = TenantId("system")


class Heard:
    """A channel that remembers its notices; ``faults`` are raised first."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.notices: list[Notice] = []
        self.held: list[Sequence[Notice]] = []
        self.is_told = asyncio.Event()

    async def send(self, notice: Notice) -> None:
        """Remember it."""
        self.notices.append(notice)
        self.is_told.set()
        if self.faults:
            raise self.faults.pop(0)

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Remember it."""
        self.held.append(firing)


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """A store with a tenant."""
    async with quick_backend() as opened:
        await opened.tenants.define(tenants_named([ACME]))
        yield opened


@asynccontextmanager
async def running(*loops: Any) -> AsyncIterator[None]:
    """Loops, until the block ends."""
    tasks = [asyncio.create_task(each) for each in loops]
    try:
        async with asyncio.timeout(TOO_LONG):
            yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_condition_is_announced_by_the_loops(backend: Backend) -> None:
    """From a finding to a channel."""
    channel = Heard()

    async def findings() -> list[Finding]:
        return [full()]

    noisy = rules(dead_letters_every=timedelta(minutes=15), system=SYSTEM)
    raising = evaluate_alerts(backend.upkeep, backend.alerts, findings, noisy, every=SOON)
    async with running(
        raising, send_notices(backend.upkeep, backend.alerts, {"one": channel}, RULES, every=SOON)
    ):
        await channel.is_told.wait()

    assert [each.alert for each in channel.notices] == [FULL]
    assert await states(backend) == {FULL: "firing"}


async def test_findings_that_fail_change_no_alert(backend: Backend) -> None:
    """A store that does not answer is not the end of a condition."""
    await moved(backend, full())
    looks = 0
    looked = asyncio.Event()

    async def findings() -> list[Finding]:
        nonlocal looks
        looks += 1
        if looks > 2:
            looked.set()
        raise RuntimeError

    loop = evaluate_alerts(
        backend.upkeep,
        backend.alerts,
        findings,
        rules(resolve_after=timedelta(0)),
        every=SOON,
    )
    async with running(loop):
        await looked.wait()

    assert await states(backend) == {FULL: "firing"}


async def test_failing_channel_delays_no_other(backend: Backend) -> None:
    """Nor does a notice delay the next one: it is tried again after its wait."""
    await moved(backend, full(), often())
    good, bad, broken = Heard(), Heard(NotDelivered("it answers 500")), Heard(RuntimeError("a bug"))
    sender = NoticeSender(backend.alerts, {"good": good, "bad": bad, "broken": broken}, RULES)
    await sender.round()
    await sender.round()

    assert [len(each.notices) for each in (good, bad, broken)] == [2, 2, 2]
    waiting = {each.channel: (each.tries, each.error) for each in await backend.alerts.waiting()}
    assert waiting == {"bad": (1, "it answers 500"), "broken": (1, "RuntimeError")}


@pytest.mark.parametrize(("fault", "has_more"), [(NotDelivered("no answer"), False), (None, True)])
async def test_channel_that_fails_slowly_ends_its_round(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, fault: Exception | None, has_more: bool
) -> None:
    """A one-shot process must end. A channel that only takes long goes on with the next notice."""
    await moved(backend, full(), often())
    now = 0.0
    monkeypatch.setattr("carteiro.maintenance.notices.time", SimpleNamespace(monotonic=lambda: now))

    class Slow(Heard):
        async def send(self, notice: Notice) -> None:
            nonlocal now
            now += 60
            await super().send(notice)

    channel = Slow(*[fault] if fault else [])
    assert await NoticeSender(backend.alerts, {"one": channel}, RULES).round() is has_more
    assert len(channel.notices) == 1


async def test_notice_is_given_up_after_a_day(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log line has it then."""
    await moved(backend, full())
    monkeypatch.setattr(notices, "GIVE_UP_AFTER", timedelta(0))
    await NoticeSender(backend.alerts, {"bad": Heard(NotDelivered("no answer"))}, RULES).round()

    assert await backend.alerts.waiting() == []


async def test_channels_learn_what_fires_now_and_then(backend: Backend) -> None:
    """Also if there is no notice; a silenced alert does not fire for them."""
    await moved(backend, full(), often())
    await backend.alerts.silence(FULL, "", TenantId(""), lasts=timedelta(hours=1), reason="known")
    channel = Heard()
    sender = NoticeSender(backend.alerts, {"one": channel}, RULES)
    await sender.round()
    await sender.round()

    [held] = channel.held
    assert [each.subject for each in held] == [ACME]


async def test_round_without_notices_asks_once(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most rounds are like this."""
    sender = NoticeSender(backend.alerts, {"one": Heard(), "other": Heard()}, RULES)
    await sender.round()
    monkeypatch.setattr(backend.alerts, "due", None)
    monkeypatch.setattr(backend.alerts, "list", None)

    assert await sender.round() is False
