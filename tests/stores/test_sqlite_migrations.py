"""A file of an earlier version opens, and everything in it goes on as if nothing had happened."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.keys import hash_key
from carteiro.model import EMAIL, MessageId, RedriveAnswer, State, Tenant, TenantId
from carteiro.ports import Backend
from carteiro.stores.sqlite import open_sqlite
from support.builders import sent
from support.clock import StoreClock
from support.steps import attempted, claimed

_FILES = Path(__file__).parent / "files"
_ACME = TenantId("acme")
_DEAD = MessageId("018cc251-f400-7000-8000-000000000002")
_WAITING = MessageId("018cc251-f400-7000-8000-000000000007")


@pytest.fixture
async def opened(tmp_path: Path, clock: StoreClock) -> AsyncIterator[Backend]:
    """A store on a file that version 0.1.0 left."""
    file = tmp_path / "post.db"
    with closing(sqlite3.connect(file)) as db:
        db.executescript((_FILES / "version_0_1_0.sql").read_text(encoding="utf-8"))
    async with open_sqlite(file, clock=clock) as backend:
        yield backend


@pytest.fixture
def clock() -> StoreClock:
    """It stands where it stood when the file was left."""
    return StoreClock()


async def test_every_message_is_where_it_was(opened: Backend) -> None:
    """No state is lost on the way."""
    assert await opened.reading.states() == {
        State.SENT: 1,
        State.FAILED: 1,
        State.CANCELLED: 1,
        State.RETRY_SCHEDULED: 1,
        State.SENT_ATTEMPT: 1,
        State.ENQUEUED: 3,
    }


async def test_every_unfinished_message_is_claimed_in_its_time(
    opened: Backend, clock: StoreClock
) -> None:
    """What waits now, what was in flight when its time is over, what is scheduled when it is due."""
    now = [job.lease.job for job in await claimed(opened.store, kinds=[EMAIL])]
    clock.advance(timedelta(hours=1))
    later = await claimed(opened.store, kinds=[EMAIL])

    assert now == [_WAITING]
    assert len(later) == 5
    assert [job.open_attempt for job in later].count(True) == 1


async def test_tenants_and_their_keys_are_known(opened: Backend) -> None:
    """A key that opened the old file opens the new one, and shares are what they were."""
    key = await opened.keys.holder(hash_key("ck_kept"))

    assert key is not None
    assert key.tenant == _ACME
    assert await opened.tenants.find([_ACME]) == [Tenant(_ACME, name="Acme", tier="gold", cap=5)]


async def test_a_dead_letter_is_redriven(opened: Backend) -> None:
    """What was kept for people can be sent."""
    await opened.store.cancel([_WAITING], tenant=_ACME)

    answers = await opened.dead_letters.redrive([_DEAD], by="test")

    assert answers == [RedriveAnswer.REDRIVEN]
    await attempted(opened.store, sent())
    row = await opened.reading.message(_DEAD)
    assert row is not None
    assert row.state is State.SENT
