"""Conditions that hold are found from what the store has, at a constant cost."""

from collections import Counter
from datetime import timedelta
from typing import Any

from carteiro.config import load
from carteiro.maintenance.watch import EVALUATION, findings
from carteiro.model import Category, Dead, DeadReason
from carteiro.model.reports import QueueReport, Report
from carteiro.policy.alert_values import Thresholds
from carteiro.ports import Backend
from support.builders import ACME, a_failure, a_message, messages, sent, tenants_named
from support.clock import StoreClock
from support.quick_store import quick_backend
from support.steps import accepted, attempted

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def _thresholds(**changes: Any) -> Thresholds:
    return load(
        environ={}, overrides={f"alerts.{k}": v for k, v in changes.items()}
    ).alerts.thresholds


async def _died(backend: Backend, category: Category = Category.PERMANENT_ERROR) -> None:
    await accepted(backend.store, a_message(template_type="welcome"))
    failure = a_failure(category=category)
    await attempted(backend.store, Dead(DeadReason.PERMANENT_ERROR, failure))


async def _alerts(backend: Backend, clock: StoreClock, **changes: Any) -> list[str]:
    await backend.rollups.fold(limit=1000, most=100)
    found = await findings(backend, _thresholds(**changes), now=clock.at())
    return [f"{each.alert} {each.subject}".strip() for each in found]


async def test_dead_letters_of_a_template_are_found() -> None:
    """By their number, their tenant, their share and their template; the attempts failed, too."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        for _ in range(3):
            await _died(backend)
        few = {"dead_letters": 2, "tenant_dead_letters": 2, "min_messages": 3}

        assert await _alerts(backend, clock) == []
        assert await _alerts(backend, clock, **few) == [
            "ManyDeadLetters",
            "DeadLetterShareHigh",
            f"TenantManyDeadLetters {ACME}",
            "FailureRateHigh",
            f"TemplateFails {ACME}/welcome",
        ]


async def test_failures_are_compared_with_the_same_hour_yesterday() -> None:
    """Other categories than then are found; the same ones are not."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await _died(backend)
        clock.advance(DAY)
        await _died(backend)
        same = await _alerts(backend, clock, error_mix_failures=1)
        await _died(backend, Category.TRANSIENT_ERROR)

        assert same == []
        assert await _alerts(backend, clock, error_mix_failures=1) == ["ErrorMixChanged"]


async def test_slow_delivery_and_an_old_queue_are_found() -> None:
    """By the delays of what was sent, and by the samples of the queue's age."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        await accepted(backend.store, *messages(1))
        clock.advance(6 * MINUTE)
        await attempted(backend.store, sent())
        for _ in range(2):
            await backend.rollups.see(Counter(max_queue_age_ms=130_000))
            clock.advance(MINUTE)

        assert await _alerts(backend, clock) == ["DeliverySlow", "QueueAgeHigh"]


async def test_silence_of_upkeep_is_found() -> None:
    """Evaluating alerts does not count as maintenance."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.upkeep.lead("expire", holder="a", term=MINUTE)
        clock.advance(11 * MINUTE)
        await backend.upkeep.lead(EVALUATION, holder="b", term=MINUTE)

        assert await _alerts(backend, clock) == ["SchedulerSilent"]


async def test_reports_of_processes_are_found() -> None:
    """An open circuit, and a queue that refuses."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        queue = QueueReport(95, 100, rejected=1, out_of_memory=1)
        opened = {"smtp": clock.at() - 6 * MINUTE}
        await backend.reports.put(Report("a", opened, queue), stay=3 * MINUTE)

        assert await _alerts(backend, clock) == [
            "CircuitOpen smtp",
            "QueueMemoryHigh",
            "QueueMemoryCritical",
            "QueueConnectionsRejected",
            "QueueOutOfMemory",
        ]
