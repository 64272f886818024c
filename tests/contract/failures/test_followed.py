"""Failures, followed: what became of each retry is counted once in the history of the group that it follows."""

from collections import Counter
from datetime import timedelta
from typing import Any

from carteiro.model import NOTICES, Dead, DeadReason, End, GroupHistory, MessageId, Retry
from carteiro.policy.history import DAY_MS, MOST_DAYS, total
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, dead, messages, sent
from support.clock import StoreClock, past
from support.failing import FULL, FULL_ID, SECOND, UNKNOWN, UNKNOWN_ID, folded
from support.set_ups import Place
from support.steps import (
    HOLD,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    declare,
    settled,
)

_LOST = Dead(DeadReason.MAX_ATTEMPTS_EXCEEDED, FULL, charged=True)
_AGAIN = Retry(SECOND, charged=True, failure=FULL)


async def _tried(
    backend: Backend, clock: StoreClock, *verdicts: Any, tenant: str = ACME, **changes: Any
) -> MessageId:
    """A message with an attempt for each verdict."""
    [message] = await accepted(backend.store, a_message(tenant, **changes))
    for verdict in verdicts:
        await attempted(backend.store, verdict)
        clock.advance(SECOND)
    return message


async def _history(backend: Backend, group: str = FULL_ID) -> GroupHistory:
    [found] = await backend.failures.histories([group])
    return found


async def _figures(backend: Backend, group: str = FULL_ID) -> dict[str, int]:
    return dict(+total((await _history(backend, group)).whole))


async def test_retries_are_counted_by_number_and_pause(backend: Backend, clock: StoreClock) -> None:
    """Sent at the third attempt, sent at the second, lost at the third; the pauses are one second each."""
    await _tried(backend, clock, _AGAIN, _AGAIN, sent())
    await _tried(backend, clock, _AGAIN, sent())
    await _tried(backend, clock, _AGAIN, _AGAIN, _LOST)

    for _ in range(2):
        found = await _history(backend)
        assert found.group.id == FULL_ID
        assert total(found.whole) == Counter(
            {"sent.2": 1, "sent.3": 1, "failed.2": 2, "failed.3": 1, "lost": 1}
            | {"sent_after.5": 2, "failed_after.5": 3}
        )
        assert found.whole.lost_in_a_row == 1
        await folded(backend)


async def test_retries_sent_by_one_list_are_counted_each(
    backend: Backend, clock: StoreClock
) -> None:
    """First attempts and retries of two failures in one list, as a worker settles them."""
    await accepted(backend.store, *messages(4))
    for number, job in enumerate(await claimed(backend.store, limit=4)):
        await declare(backend.store, job)
        failure = FULL if number % 2 else UNKNOWN
        await settled(backend.store, job, Retry(SECOND, charged=True, failure=failure))
    clock.advance(SECOND)
    await accepted(backend.store, *messages(3))
    jobs = await claimed(backend.store, limit=7)
    for job in jobs:
        await declare(backend.store, job)
    await backend.store.settle([End(job.lease, sent()) for job in jobs])

    for group in (FULL_ID, UNKNOWN_ID):
        assert await _figures(backend, group) == {"sent.2": 2, "sent_after.5": 2}


async def test_success_of_a_first_attempt_adds_nothing(backend: Backend, clock: StoreClock) -> None:
    """Nor does a failure that was not tried again, a cancel, or the end of the time to live."""
    await _tried(backend, clock, sent())
    await _tried(backend, clock, _LOST)
    cancelled = await _tried(backend, clock, _AGAIN)
    await backend.store.cancel([cancelled], tenant=ACME)
    await _tried(backend, clock, _AGAIN, ttl=timedelta(seconds=10))
    clock.advance(past(timedelta(seconds=10)))
    await backend.upkeep.expire(limit=10)

    assert await backend.failures.histories([FULL_ID]) == []


async def test_result_belongs_to_the_failure_before_it(backend: Backend, clock: StoreClock) -> None:
    """A message that fails otherwise when it is tried again: the retry was in vain."""
    final = Dead(DeadReason.PERMANENT_ERROR, UNKNOWN, charged=True)
    await _tried(backend, clock, _AGAIN, final)

    assert await _figures(backend) == {"failed.2": 1, "failed_after.5": 1, "lost": 1}
    assert await backend.failures.histories([UNKNOWN_ID]) == []


async def test_redriven_round_is_a_try_of_its_own(backend: Backend, clock: StoreClock) -> None:
    """Of a permanent failure it is the only one; folded before or after."""
    final = Dead(DeadReason.PERMANENT_ERROR, UNKNOWN, charged=True)
    for verdict in (sent(), final):
        message = await _tried(backend, clock, final)
        await folded(backend)
        await backend.dead_letters.redrive([message], by="ana")
        await attempted(backend.store, verdict)

    assert await _figures(backend, UNKNOWN_ID) == {"redriven.sent": 1, "redriven.lost": 1}


async def test_repeated_and_late_results_add_nothing(backend: Backend, clock: StoreClock) -> None:
    """An answer that was lost is asked for again; a lost message that was sent after all is not lost."""
    await accepted(backend.store, a_message())
    await attempted(backend.store, _AGAIN)
    clock.advance(SECOND)
    job = await claimed_and_declared(backend.store)
    for _ in range(3):
        await settled(backend.store, job, sent())
    await accepted(backend.store, a_message(BRASA))
    await attempted(backend.store, _AGAIN)
    clock.advance(SECOND)
    late = await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))
    await backend.store.reap(limit=10)
    doubtful = await claimed_alone(backend.store)
    await settled(backend.store, doubtful, dead(DeadReason.IN_DOUBT))
    assert (await _figures(backend))["lost"] == 1
    await settled(backend.store, late, sent())

    figures = await _figures(backend)
    assert (figures["sent.2"], figures.get("lost", 0)) == (1, 0)


async def test_tenants_have_histories_of_their_own(backend: Backend, clock: StoreClock) -> None:
    """Those with the most results first; the sum of all knows how it is without the largest one."""
    await _tried(backend, clock, _AGAIN, sent())
    for _ in range(2):
        await _tried(backend, clock, _AGAIN, _AGAIN, _LOST, tenant=BRASA)
    await folded(backend)

    found = await backend.failures.tenant_histories(least=1, limit=10)
    assert [(group, tenant) for group, tenant, _ in found] == [(FULL_ID, BRASA), (FULL_ID, ACME)]
    assert total(found[0][2])["lost"] == 2
    assert total(found[1][2]) == Counter({"sent.2": 1, "sent_after.5": 1})
    assert await backend.failures.tenant_histories(least=2, limit=1) == found[:1]
    whole = await _history(backend)
    assert (whole.tenants, total(whole.whole)["lost"]) == (2, 2)
    assert total(whole.without_largest) == Counter({"sent.2": 1, "sent_after.5": 1})


async def test_history_of_an_erased_tenant_is_gone(backend: Backend, clock: StoreClock) -> None:
    """A new tenant of its name learns from nothing; Carteiro's own mails teach nothing."""
    await backend.tenants.ensure([NOTICES])
    for tenant in (ACME, NOTICES):
        await _tried(backend, clock, _AGAIN, sent(), tenant=tenant)
    await folded(backend)
    assert len(await backend.failures.tenant_histories(least=1, limit=10)) == 1
    await backend.tenants.erase(ACME)

    assert await backend.failures.tenant_histories(least=1, limit=10) == []


async def test_history_has_some_days(backend: Backend, clock: StoreClock) -> None:
    """Older ones are not in it any more."""
    day = DAY_MS * SECOND / 1000
    for _ in range(3):
        await _tried(backend, clock, _AGAIN, _LOST)
        clock.advance(day)
        await folded(backend)
    [(_, _, recent)] = await backend.failures.tenant_histories(least=1, limit=10)
    clock.advance((MOST_DAYS - 2) * day)
    [(_, _, older)] = await backend.failures.tenant_histories(least=1, limit=10)

    assert (len(recent.days), recent.lost_in_a_row) == (3, 3)
    assert len(older.days) == 1


async def test_histories_are_there_for_the_next_opener(place: Place) -> None:
    """Folded ones and notes."""
    async with place.opened() as first:
        await _tried(first, place.clock, _AGAIN, sent())
        await folded(first)
        await _tried(first, place.clock, _AGAIN, _LOST)

    async with place.opened() as second:
        figures = await _figures(second)
    assert (figures["sent.2"], figures["failed.2"], figures["lost"]) == (1, 1, 1)
