"""Roll-ups of random lives: the figures are those of the messages, whatever is folded in between."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carteiro.model import DEAD, FailureFilter, MessageFilter, MessageId, State, Verdict
from carteiro.ports import Backend
from carteiro.stores.sqlite.opening import sql
from support.builders import ACME, BRASA, dead, messages, retry, sent, tenants_named
from support.clock import StoreClock, past
from support.quick_store import quick_backend, sqlite_file
from support.steps import HOLD, claimed, declare, settled

DAY = timedelta(days=1)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("accept"), st.integers(1, 4)),
        st.tuples(st.just("settle"), st.sampled_from(["sent", "retry", "dead"])),
        st.tuples(st.just("late"), st.sampled_from(["sent", "dead"])),
        st.tuples(st.just("wait"), st.integers(1, 90)),
        st.tuples(st.just("fold"), st.integers(1, 5)),
        st.tuples(st.just("redrive"), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 3)),
    ),
    min_size=5,
    max_size=40,
)
_VERDICTS: dict[str, Verdict] = {
    "sent": sent(),
    "retry": retry(timedelta(seconds=5)),
    "dead": dead(),
}


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_figures_are_those_of_the_messages(steps: list[tuple[str, object]]) -> None:
    """By minute and by hour, of all and by tenant."""
    asyncio.run(_lived(steps))


async def _lived(steps: list[tuple[str, object]]) -> None:
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        for step in steps:
            await _take(backend, clock, *step)
        for tenant in (None, ACME, BRASA):
            expected = await _expected(backend, tenant)
            for span in ("minute", "hour"):
                found = await backend.rollups.total(span, DAY, tenant=tenant)
                assert {name: found[name] for name in expected} == expected, (span, tenant)
            assert await _grouped(backend, tenant) == await _failed(backend, tenant), tenant


async def _take(backend: Backend, clock: StoreClock, step: str, how: object) -> None:
    ids = await _ids(backend)
    match step, how:
        case "accept", int():
            await backend.store.accept([*messages(how, ACME), *messages(1, BRASA)])
        case "settle", str():
            for job in await claimed(backend.store, limit=3):
                await settled(backend.store, job, _VERDICTS[how])
                await settled(backend.store, job, sent("again"))  # its answer was lost
        case "late", str():
            for job in await claimed(backend.store, limit=1):
                await declare(backend.store, job)
                clock.advance(past(HOLD))
                await backend.store.reap(limit=10)
                await settled(backend.store, job, _VERDICTS[how])
        case "wait", int():
            clock.advance(timedelta(seconds=how))
        case "fold", int():
            await backend.rollups.fold(limit=how, most=10)
        case "redrive", _:
            await backend.dead_letters.redrive(ids, by="ana")
        case "cancel", int():
            await backend.store.cancel(ids[how : how + 1], tenant=ACME)


async def _grouped(backend: Backend, tenant: str | None) -> tuple[int, int]:
    """Failed attempts and deaths of all groups."""
    wanted = FailureFilter(tenant=tenant)  # type: ignore[arg-type]
    groups = (await backend.failures.list(wanted)).rows
    for each in groups:
        report = await backend.failures.show(each.id, tenant=wanted.tenant)
        assert report is not None
        assert sum(hour.attempts for hour in report.hours) == each.attempts
        assert sum(part.deaths for part in report.tenants) == each.deaths
    return sum(each.attempts for each in groups), sum(each.deaths for each in groups)


async def _failed(backend: Backend, tenant: str | None) -> tuple[int, int]:
    """The same, by the timelines: every retry and every death of these lives ends an attempt."""
    page = await backend.reading.messages(MessageFilter(), limit=1000)
    rows = [each for each in page.rows if tenant in {None, each.tenant}]
    events = [event for each in rows for event in await backend.reading.events(each.id)]
    names = Counter(event.type.value for event in events)
    died = names["FAILED"] + names["EXPIRED"]
    ended = sum(
        before.type.value == "SENT_ATTEMPT" and event.type.value in {"FAILED", "EXPIRED"}
        for before, event in pairwise(events)
    )
    return names["RETRY_SCHEDULED"] + ended, died


async def _ids(backend: Backend) -> list[MessageId]:
    page = await backend.reading.messages(MessageFilter(), limit=1000)
    return [each.id for each in page.rows]


async def _expected(backend: Backend, tenant: str | None) -> dict[str, int]:
    page = await backend.reading.messages(MessageFilter(), limit=1000)
    rows = [each for each in page.rows if tenant in {None, each.tenant}]
    states = Counter(each.state for each in rows)
    events = [event for each in rows for event in await backend.reading.events(each.id)]
    names = Counter(event.type.value for event in events)
    return {
        "accepted": len(rows),
        "sent": states[State.SENT],
        "failed": sum(states[each] for each in DEAD),
        "cancelled": states[State.CANCELLED],
        "retried": names["RETRY_SCHEDULED"],
        "redriven": sum("redrivenBy" in event.metadata for event in events),
    }


def test_templates_that_do_not_fail_are_not_read(tmp_path: Path) -> None:
    """Alerts ask every few seconds: only rows with failures are read, by their own index."""
    with closing(sqlite3.connect(sqlite_file(tmp_path))) as db:
        asked = {"since": 0, "least": 1, "limit": 1}
        plan = db.execute(f"EXPLAIN QUERY PLAN {sql('rollups_worst')}", asked).fetchall()

    read = [step for *_, step in plan if "SEARCH" in step or "SCAN" in step]
    assert read[0] == "SEARCH w USING INDEX rollups_failing (span=? AND at>?)"
    [rows] = [step for step in read if step.split()[1] == "r"]
    assert rows.startswith("SEARCH r USING PRIMARY KEY (span=? AND tenant=? AND template=?")


def test_shares_read_only_the_minutes_of_the_window(tmp_path: Path) -> None:
    """A page asks for them: not for all minutes of two days."""
    with closing(sqlite3.connect(sqlite_file(tmp_path))) as db:
        asked = {"span": "minute", "since": 0, "tenant": "a", "but": "b"}
        plan = db.execute(f"EXPLAIN QUERY PLAN {sql('rollups_shares')}", asked).fetchall()

    read = [step for *_, step in plan if "SEARCH" in step or "SCAN" in step]
    assert "SEARCH r USING INDEX rollups_by_age (span=? AND at>?)" in read
    assert any(step.startswith("SEARCH t USING") for step in read)


@pytest.mark.parametrize("statement", ["rollup_trim_tenants", "rollup_trim_templates"])
def test_trim_reads_only_its_minute(tmp_path: Path, statement: str) -> None:
    """A redrive takes failures of many past minutes back: each would read all minutes of two days, under the lock."""
    with closing(sqlite3.connect(sqlite_file(tmp_path))) as db:
        asked = {"span": "minute", "at": 0, "most": 1}
        plan = db.execute(f"EXPLAIN QUERY PLAN {sql(statement)}", asked).fetchall()

    read = [step for *_, step in plan if "SEARCH rollups" in step]
    assert len(read) == 2
    assert all("rollups_by_age (span=? AND at=?" in step for step in read)
