"""Reading, due: due jobs of a tenant are found among any number of others, the oldest first."""

from datetime import timedelta

from carteiro.model import EMAIL
from carteiro.ports import Backend
from support.builders import ACME, BRASA, TASK, a_message, a_task, dead, messages, retry
from support.clock import StoreClock
from support.steps import accepted, attempted, claimed, claimed_alone, settled

HOUR = timedelta(hours=1)


async def test_oldest_are_found_behind_any_number(backend: Backend, clock: StoreClock) -> None:
    """Neither later jobs, nor scheduled ones, nor those of others hide them."""
    [retried] = await accepted(backend.store, a_message())
    await attempted(backend.store, retry(HOUR))
    [oldest] = await accepted(backend.store, a_message())
    await accepted(backend.store, *messages(200, BRASA), a_task())
    clock.advance(2 * HOUR)
    await accepted(backend.store, *messages(1200))
    await accepted(backend.store, *messages(300, due=clock.at(HOUR)))

    found = await backend.reading.due(ACME, EMAIL, limit=3)

    assert len(found) == 3
    assert found[:2] == [oldest, retried]


async def test_claimed_jobs_come_first(backend: Backend, clock: StoreClock) -> None:
    """Each list is bounded."""
    ids = await accepted(backend.store, *messages(9))
    taken = [job.lease.job for job in await claimed(backend.store, limit=4)]

    assert sorted(taken) == sorted(ids[:4])
    found = await backend.reading.due(ACME, EMAIL, limit=3)
    assert set(found[:3]) < set(taken)
    assert found[3:] == ids[4:7]


async def test_priority_comes_before_age(backend: Backend, clock: StoreClock) -> None:
    """As in claims."""
    [usual] = await accepted(backend.store, a_message(priority=5))
    clock.advance(HOUR)
    [urgent] = await accepted(backend.store, a_message(priority=1))

    assert await backend.reading.due(ACME, EMAIL, limit=5) == [urgent, usual]


async def test_finished_message_is_not_due(backend: Backend) -> None:
    """Nor is anything of a tenant or kind without jobs."""
    await accepted(backend.store, a_message())
    await settled(backend.store, await claimed_alone(backend.store), dead())

    assert await backend.reading.due(ACME, EMAIL, limit=5) == []
    assert await backend.reading.due(BRASA, EMAIL, limit=5) == []
    assert await backend.reading.due(ACME, TASK, limit=5) == []
