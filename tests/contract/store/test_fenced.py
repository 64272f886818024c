"""Store, fenced: a worker whose job was reassigned changes no attempt of another; its result is recorded."""

from datetime import timedelta

import pytest

from carteiro.model import (
    CancelAnswer,
    End,
    EventType,
    Late,
    LeasedJob,
    MessageId,
    RedriveAnswer,
    Refused,
    RefusedWhy,
    Revision,
    Settled,
    Start,
    State,
    StoredMessage,
    Verdict,
)
from carteiro.ports import Backend, Store
from support.builders import ACME, TASK, a_message, a_task, dead, retry, sent
from support.clock import MILLISECOND, StoreClock, past
from support.steps import (
    HOLD,
    LEASE,
    accepted,
    attempted,
    claimed,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    declare,
    event_types,
    everything_about,
    settled,
)


async def _slow_worker(store: Store, clock: StoreClock) -> LeasedJob:
    """A worker that declared an attempt and slept past its hold; the job is not reassigned yet."""
    await accepted(store, a_message())
    slow = await claimed_and_declared(store)
    clock.advance(past(HOLD))
    return slow


async def _read(backend: Backend, message: MessageId) -> StoredMessage:
    row = await backend.reading.message(message)
    assert row is not None
    return row


async def test_late_worker_changes_nothing(store: Store, clock: StoreClock) -> None:
    """Its job was reassigned: its result is ignored but recorded."""
    slow = await _slow_worker(store, clock)
    quick = await claimed_and_declared(store)

    assert isinstance(await settled(store, slow, sent("late")), Late)
    assert isinstance(await settled(store, quick, sent("in time")), Settled)


@pytest.mark.parametrize("verdict", [retry(), dead()], ids=["retry", "dead"])
async def test_late_failure_is_ignored(
    backend: Backend, clock: StoreClock, verdict: Verdict
) -> None:
    """Another attempt is in flight already: the failure of an earlier one changes and writes nothing."""
    slow = await _slow_worker(backend.store, clock)
    await claimed_and_declared(backend.store)
    before = await everything_about(backend, slow.lease.job)

    answer = await settled(backend.store, slow, verdict)

    assert answer == Late(State.SENT_ATTEMPT)
    assert await everything_about(backend, slow.lease.job) == before


async def test_late_success_is_kept_alongside_a_live_attempt(
    backend: Backend, clock: StoreClock
) -> None:
    """The evidence is an event; the attempt in flight keeps state, holder and hold."""
    slow = await _slow_worker(backend.store, clock)
    await claimed_and_declared(backend.store)
    before = await _read(backend, slow.lease.job)

    answer = await settled(backend.store, slow, sent("late"))

    [*_, last] = await backend.reading.events(slow.lease.job)
    assert answer == Late(State.SENT_ATTEMPT)
    assert await _read(backend, slow.lease.job) == before
    assert last.type is EventType.LATE_RESULT
    assert last.metadata == {"outcome": "SENT", "sesMessageId": "late", "provider": "sandbox"}


@pytest.mark.parametrize("verdict", [retry(), dead()], ids=["retry", "dead"])
async def test_failure_after_a_late_success_ends_as_sent(
    backend: Backend, clock: StoreClock, verdict: Verdict
) -> None:
    """A delivered message is neither sent again nor a dead letter, though the second attempt failed."""
    slow = await _slow_worker(backend.store, clock)
    quick = await claimed_and_declared(backend.store)
    await settled(backend.store, slow, sent("late"))

    answer = await settled(backend.store, quick, verdict)

    row = await _read(backend, slow.lease.job)
    [*_, last] = await backend.reading.events(slow.lease.job)
    assert answer == Settled(State.SENT)
    assert (row.provider_id, row.failure) == ("late", None)
    assert last.metadata["late"] is True
    assert await backend.dead_letters.show(slow.lease.job) is None


async def test_own_success_wins_over_late_evidence(backend: Backend, clock: StoreClock) -> None:
    """The attempt that is settled under its claim has the provider's id."""
    slow = await _slow_worker(backend.store, clock)
    quick = await claimed_and_declared(backend.store)
    await settled(backend.store, slow, sent("late"))

    await settled(backend.store, quick, sent("in time"))

    [*_, last] = await backend.reading.events(slow.lease.job)
    assert (await _read(backend, slow.lease.job)).provider_id == "in time"
    assert "late" not in last.metadata


async def test_same_late_success_is_recorded_once(backend: Backend, clock: StoreClock) -> None:
    """Repeated evidence gets the same answer and writes nothing."""
    slow = await _slow_worker(backend.store, clock)
    await claimed_and_declared(backend.store)
    await settled(backend.store, slow, sent("late"))
    before = await everything_about(backend, slow.lease.job)

    assert await settled(backend.store, slow, sent("late")) == Late(State.SENT_ATTEMPT)
    assert await everything_about(backend, slow.lease.job) == before


async def test_expired_claim_still_settles_while_the_job_is_not_reassigned(
    store: Store, clock: StoreClock
) -> None:
    """The claim decides, not the time: without another claimer there is nothing to protect."""
    slow = await _slow_worker(store, clock)

    assert await settled(store, slow, sent()) == Settled(State.SENT)


async def test_late_success_ends_a_message_that_is_not_in_flight(
    backend: Backend, clock: StoreClock
) -> None:
    """After reap the claim is gone, and no attempt is live: the evidence decides, the job leaves the queue."""
    slow = await _slow_worker(backend.store, clock)
    await backend.store.reap(limit=10)

    answer = await settled(backend.store, slow, sent("late"))

    assert answer == Late(State.SENT)
    assert (await event_types(backend, slow.lease.job))[-2:] == [
        EventType.LATE_RESULT,
        EventType.SENT,
    ]
    assert await claimed_ids(backend.store) == []


async def test_late_success_takes_the_job_from_a_mere_claim(
    backend: Backend, clock: StoreClock
) -> None:
    """A claim without an attempt must not send a sent message: its declare is refused."""
    slow = await _slow_worker(backend.store, clock)
    quick = await claimed_alone(backend.store)

    answer = await settled(backend.store, slow, sent("late"))

    assert answer == Late(State.SENT)
    assert await declare(backend.store, quick) == Refused(RefusedWhy.FINISHED)
    assert await settled(backend.store, quick, retry()) == Late(State.SENT)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(dead(), State.FAILED), (retry(timedelta(minutes=5)), State.RETRY_SCHEDULED)],
    ids=["FAILED", "RETRY_SCHEDULED"],
)
async def test_late_success_corrects_a_failure(
    backend: Backend, clock: StoreClock, verdict: Verdict, state: State
) -> None:
    """A message that was given up or waits for a retry was in fact delivered: SENT, and no dead letter."""
    slow = await _slow_worker(backend.store, clock)
    await attempted(backend.store, verdict)
    assert (await _read(backend, slow.lease.job)).state is state

    answer = await settled(backend.store, slow, sent("late"))

    row = await _read(backend, slow.lease.job)
    assert answer == Late(State.SENT)
    assert (row.state, row.provider_id, row.failure) == (State.SENT, "late", None)
    assert await backend.dead_letters.show(slow.lease.job) is None
    clock.advance(timedelta(minutes=5))
    assert await claimed_ids(backend.store) == []


async def test_late_success_ends_a_redriven_message(backend: Backend, clock: StoreClock) -> None:
    """Redriven and not yet claimed: it was delivered."""
    slow = await _slow_worker(backend.store, clock)
    await attempted(backend.store, dead())
    answers = await backend.dead_letters.redrive([slow.lease.job], by="ana")

    answer = await settled(backend.store, slow, sent("late"))

    assert answers == [RedriveAnswer.REDRIVEN]
    assert answer == Late(State.SENT)
    assert await backend.dead_letters.show(slow.lease.job) is None
    assert await claimed_ids(backend.store) == []


async def test_late_success_of_an_earlier_revision_ends_nothing(
    backend: Backend, clock: StoreClock
) -> None:
    """It went to the old address: the new one still gets its mail, and the timeline has both."""
    slow = await _slow_worker(backend.store, clock)
    await attempted(backend.store, dead())
    edited = Revision('{"html":"<p>Novo</p>"}', "rui@example.com", "Novo")
    await backend.dead_letters.redrive([slow.lease.job], by="ana", revision=edited)

    end = End(slow.lease, sent("late"), revision=slow.revision)
    answers = [*await backend.store.settle([end]), *await backend.store.settle([end])]

    assert answers == [Late(State.ENQUEUED)] * 2
    assert (await event_types(backend, slow.lease.job)).count(EventType.LATE_RESULT) == 1
    await attempted(backend.store, sent("new"))
    row = await _read(backend, slow.lease.job)
    assert (row.state, row.provider_id) == (State.SENT, "new")


async def test_late_success_ends_an_expired_message(backend: Backend, clock: StoreClock) -> None:
    """Evidence corrects EXPIRED as it does FAILED."""
    slow = await _slow_worker(backend.store, clock)
    await attempted(backend.store, retry(timedelta(days=2)))
    assert (await _read(backend, slow.lease.job)).state is State.EXPIRED

    assert await settled(backend.store, slow, sent("late")) == Late(State.SENT)


async def test_late_success_does_not_change_a_sent_or_cancelled_message(
    backend: Backend, clock: StoreClock
) -> None:
    """A second delivery of a finished message is an event, and nothing else."""
    slow = await _slow_worker(backend.store, clock)
    await attempted(backend.store, sent("in time"))
    cancelled = await _slow_worker(backend.store, clock)
    await attempted(backend.store, retry(timedelta(minutes=5)))
    answers = await backend.store.cancel([cancelled.lease.job], tenant=ACME)
    assert answers == [CancelAnswer.CANCELLED]

    for job, state in ((slow, State.SENT), (cancelled, State.CANCELLED)):
        before = await _read(backend, job.lease.job)
        assert await settled(backend.store, job, sent("late")) == Late(state)
        assert await _read(backend, job.lease.job) == before
        assert (await event_types(backend, job.lease.job))[-1] is EventType.LATE_RESULT


async def test_late_task_is_sent_while_no_other_declared_it(
    backend: Backend, clock: StoreClock
) -> None:
    """For kinds that do not declare, a live lease protects nothing: the task was done."""
    [message] = await accepted(backend.store, a_task())
    slow = await claimed_alone(backend.store, kinds=[TASK])
    clock.advance(past(LEASE))
    quick = await claimed_alone(backend.store, kinds=[TASK])

    late = await settled(backend.store, slow, sent("late"), attempted=True)
    again = await settled(backend.store, quick, sent("again"), attempted=True)

    assert late == Late(State.SENT)
    assert again == Late(State.SENT)
    assert (await _read(backend, message)).provider_id == "late"


async def test_lost_claim_cannot_declare(backend: Backend, clock: StoreClock) -> None:
    """The ledger decides: only the job's present claim may attempt."""
    [message] = await accepted(backend.store, a_message())
    lost = await claimed_alone(backend.store)
    clock.advance(past(LEASE))
    await backend.store.reap(limit=10)
    before = await everything_about(backend, message)

    after_reap = await declare(backend.store, lost)
    await claimed_alone(backend.store)
    after_claim = await declare(backend.store, lost)

    assert after_reap == after_claim == Refused(RefusedWhy.LOST)
    assert await everything_about(backend, message) == before


async def test_lost_claim_cannot_release(store: Store, clock: StoreClock) -> None:
    """Releasing a job of another would give it to a third."""
    await accepted(store, a_message())
    lost = await claimed_alone(store)
    clock.advance(past(LEASE))
    await claimed_alone(store)

    await store.release([lost.lease])

    assert await claimed_ids(store) == []


async def test_both_must_agree_on_an_open_attempt(store: Store, clock: StoreClock) -> None:
    """A start that does not know of the doubt would send twice without a trace: refused."""
    slow = await _slow_worker(store, clock)
    job = await claimed_alone(store)
    unaware = Start(job.lease, "sandbox", HOLD, open_attempt=False)

    [answer] = await store.declare([unaware])

    assert job.lease != slow.lease
    assert answer == Refused(RefusedWhy.LOST)


async def test_attempt_that_became_live_again_is_not_repeated(
    store: Store, clock: StoreClock
) -> None:
    """The clock steps back into another's hold: the new claimer gets the time to wait."""
    await _slow_worker(store, clock)
    job = await claimed_alone(store)

    clock.back(timedelta(seconds=10))
    answer = await declare(store, job)

    assert answer == Refused(RefusedWhy.HELD, timedelta(seconds=10) - MILLISECOND)


async def test_claim_that_was_half_taken_over(backend: Backend, clock: StoreClock) -> None:
    """Its declared attempt is still its own; the jobs that it had only claimed are the other's."""
    store = backend.store
    await accepted(store, *(a_message() for _ in range(3)))
    slow = await claimed(store)
    await declare(store, slow[0], hold=3 * LEASE)

    clock.advance(past(LEASE))
    quick = await claimed(store)
    answers = [await settled(store, job, sent()) for job in quick]
    repeated = await store.extend([job.lease for job in slow], lease=LEASE)
    await store.release([job.lease for job in slow])
    own = await settled(store, slow[0], sent())
    late = [await store.settle([End(job.lease, sent("late"))]) for job in slow[1:]]

    assert {job.lease.job for job in quick} == {job.lease.job for job in slow[1:]}
    assert answers == [Settled(State.SENT)] * 2
    assert repeated == [True, False, False]
    assert own == Settled(State.SENT)
    assert late == [[Late(State.SENT)]] * 2
    assert await claimed(store) == []


async def test_redriven_message_is_no_longer_its_old_claims(backend: Backend) -> None:
    """A claim lives on for its slowest job; a job that ended is not its own again by being redriven."""
    store = backend.store
    await accepted(store, *(a_message() for _ in range(2)))
    ended, slow = await claimed(store)
    await settled(store, ended, dead())
    await backend.dead_letters.redrive([ended.lease.job], by="ana")

    refused = await declare(store, ended)
    extended = await store.extend([ended.lease, slow.lease], lease=LEASE)
    again = await claimed_and_declared(store)

    assert refused == Refused(RefusedWhy.LOST)
    assert extended == [False, True]
    assert again.lease.job == ended.lease.job
    assert await settled(store, again, sent()) == Settled(State.SENT)
