"""Store, ordered: inside a tenant: priority, then due time, then id."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from carteiro.ports import Backend, Store
from support.builders import ACME, a_message, a_tenant, an_id, messages, retry
from support.clock import StoreClock
from support.set_ups import PROPERTY, SetUp
from support.steps import accepted, attempted, claimed, claimed_ids

SECOND = timedelta(seconds=1)


async def test_more_urgent_goes_first(store: Store) -> None:
    """Priority 1 before 5 before 10, in any order of arrival."""
    low, normal, high = await accepted(
        store, a_message(priority=10), a_message(), a_message(priority=1)
    )

    assert await claimed_ids(store) == [high, normal, low]


async def test_earlier_due_goes_first_among_equals(store: Store, clock: StoreClock) -> None:
    """A message scheduled for earlier goes before one accepted earlier."""
    later, sooner = await accepted(
        store, a_message(due=clock.at(2 * SECOND)), a_message(due=clock.at(SECOND))
    )

    clock.advance(2 * SECOND)

    assert await claimed_ids(store) == [sooner, later]


async def test_older_id_goes_first_among_those_due_at_once(store: Store) -> None:
    """In any order of arrival."""
    older, newer = an_id(), an_id()
    await accepted(store, a_message(id=newer), a_message(id=older))

    assert await claimed_ids(store) == [older, newer]


async def test_due_time_in_the_past_jumps_no_queue(store: Store, clock: StoreClock) -> None:
    """A message that is due before it is accepted is due when it is accepted."""
    [first] = await accepted(store, a_message())
    clock.advance(SECOND)
    [backdated] = await accepted(store, a_message(due=clock.at(-timedelta(days=1))))

    assert await claimed_ids(store) == [first, backdated]


async def test_retry_queues_by_its_new_due_time(store: Store, clock: StoreClock) -> None:
    """A retry that comes back goes behind earlier due jobs."""
    [retried] = await accepted(store, a_message())
    await attempted(store, retry(2 * SECOND))
    [between] = await accepted(store, a_message(due=clock.at(SECOND)))

    clock.advance(2 * SECOND)

    assert await claimed_ids(store) == [between, retried]


async def test_released_job_keeps_its_place(store: Store) -> None:
    """As if it had never been claimed: it is first again."""
    first, second = await accepted(store, *messages(2))
    [job] = await claimed(store, limit=1)

    await store.release([job.lease])

    assert await claimed_ids(store) == [first, second]


@PROPERTY
@given(
    wishes=st.lists(st.tuples(st.integers(1, 10), st.integers(-5, 5)), min_size=1, max_size=25),
    limits=st.lists(st.integers(1, 7), min_size=25, max_size=25),
)
async def test_claims_of_any_size_follow_the_order(
    set_up: SetUp, wishes: Sequence[tuple[int, int]], limits: Sequence[int]
) -> None:
    """Scheduled and ready jobs mix into one order, over any number of claims."""
    clock = StoreClock()
    async with set_up.opened(clock) as backend:
        await backend.tenants.define([a_tenant(ACME)])
        expected = await _scheduled(backend, clock, wishes)
        clock.advance(5 * SECOND)
        got = [job for limit in limits for job in await claimed_ids(backend.store, limit=limit)]

    assert got == expected


async def _scheduled(
    backend: Backend, clock: StoreClock, wishes: Sequence[tuple[int, int]]
) -> list[str]:
    new = [
        a_message(priority=priority, due=clock.at(offset * SECOND)) for priority, offset in wishes
    ]
    await accepted(backend.store, *new)
    now = clock.at()
    return [
        each.id for each in sorted(new, key=lambda e: (e.priority, max(now, e.due or now), e.id))
    ]
