"""Places of claimed jobs on SQLite may be out of date: lists that rely on them write nothing wrong."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.model import (
    Begun,
    CancelAnswer,
    End,
    Fairness,
    Late,
    Lease,
    LeasedJob,
    Refused,
    Settled,
    Start,
    State,
    TenantId,
)
from carteiro.ports import Backend
from carteiro.stores.sqlite import SqliteOptions, claim, open_sqlite
from support.builders import ACME, TASK, a_message, a_task, a_tenant, sent
from support.clock import StoreClock, past
from support.steps import HOLD, LEASE, RECEIVED, accepted, claimed, claimed_ids

_TABLES = ("entries", "leased", "ready", "delayed", "unfinished")
_USUAL = SqliteOptions()
_ONE_A_TURN = Fairness(max_jobs_per_tenant_batch=1)


@asynccontextmanager
async def _opened(file: Path, options: SqliteOptions = _USUAL) -> AsyncIterator[Backend]:
    async with open_sqlite(file, options) as backend:
        await backend.tenants.define([a_tenant()])
        yield backend


def _rows(file: Path) -> dict[str, int]:
    with closing(sqlite3.connect(file)) as db:
        return {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES
        }


async def _cancelled(backend: Backend, job: LeasedJob) -> CancelAnswer:
    [answer] = await backend.store.cancel([job.lease.job], tenant=TenantId(ACME))
    return answer


def _ends(jobs: Sequence[LeasedJob]) -> list[End]:
    return [End(job.lease, sent(""), attempted=True) for job in jobs]


async def test_changed_job_does_not_keep_a_list_from_being_settled(tmp_path: Path) -> None:
    """One was cancelled since its claim: the others are settled all the same, and each once."""
    file = tmp_path / "post.db"
    async with _opened(file) as backend:
        await accepted(backend.store, *(a_task() for _ in range(3)))
        jobs = await claimed(backend.store, kinds=[TASK])
        assert await _cancelled(backend, jobs[1]) is CancelAnswer.REQUESTED

        answers = await backend.store.settle(_ends(jobs))
        again = await backend.store.settle(_ends(jobs[:1]))

    assert answers == [Settled(State.SENT)] * 3
    assert again == [Settled(State.SENT)]
    assert _rows(file) == dict.fromkeys(_TABLES, 0) | {"entries": 3}


async def test_lost_lease_in_a_list_is_late(tmp_path: Path) -> None:
    """One was claimed by another: it alone is late, and as it was sent, all three end."""
    file, clock = tmp_path / "post.db", StoreClock()
    async with _opened(file, SqliteOptions(clock=clock)) as backend:
        await accepted(backend.store, *(a_task() for _ in range(3)))
        jobs = await claimed(backend.store, kinds=[TASK])
        await backend.store.extend([job.lease for job in jobs[1:]], lease=2 * LEASE)
        clock.advance(past(LEASE))
        [other] = await claimed(backend.store, kinds=[TASK], limit=1)

        answers = await backend.store.settle(_ends(jobs))

    late = [job.lease.job == other.lease.job for job in jobs]
    assert [isinstance(answer, Late) for answer in answers] == late
    assert _rows(file) == dict.fromkeys(_TABLES, 0) | {"entries": 3}


async def test_changed_job_does_not_keep_a_list_from_being_declared(tmp_path: Path) -> None:
    """One was cancelled since its claim: its attempt is refused, the others begin."""
    file = tmp_path / "post.db"
    async with _opened(file) as backend:
        await accepted(backend.store, *(a_message() for _ in range(3)))
        jobs = await claimed(backend.store)
        assert await _cancelled(backend, jobs[1]) is CancelAnswer.CANCELLED

        starts = [Start(job.lease, "sandbox", HOLD, events=(RECEIVED,)) for job in jobs]
        answers = await backend.store.declare(starts)

    assert [type(answer) for answer in answers] == [Begun, Refused, Begun]
    assert _rows(file)["leased"] == 2


async def test_lease_without_its_place_is_as_good(tmp_path: Path) -> None:
    """A lease is its job and its claim: the rest saves time."""
    file = tmp_path / "post.db"
    async with _opened(file) as backend:
        await accepted(backend.store, a_task())
        [job] = await claimed(backend.store, kinds=[TASK])
        bare = Lease(job.lease.job, job.lease.claim)

        [answer] = await backend.store.settle([End(bare, sent(""), attempted=True)])

    assert bare == job.lease
    assert answer == Settled(State.SENT)
    assert _rows(file) == dict.fromkeys(_TABLES, 0) | {"entries": 1}


async def test_jobs_made_ready_during_a_claim_are_claimed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A more urgent one that is made ready late comes before those that are taken already."""
    monkeypatch.setattr(claim, "READIED_PER_TURN", 1)
    clock = StoreClock()
    async with _opened(
        tmp_path / "post.db", SqliteOptions(clock=clock, fairness=_ONE_A_TURN)
    ) as backend:
        due = [clock.at(timedelta(seconds=1 + each)) for each in range(4)]
        later = [
            a_message(priority=priority, due=at)
            for priority, at in zip((5, 7, 6, 8), due, strict=True)
        ]
        await accepted(backend.store, *later)
        clock.advance(timedelta(minutes=1))

        first = await claimed_ids(backend.store, limit=3)
        second = await claimed_ids(backend.store, limit=3)

    assert sorted([*first, *second]) == [each.id for each in later]
