"""The path of one message through a worker: its result, and its timeline."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any, NoReturn

import pytest

from carteiro.engine.run import Run
from carteiro.engine.worker import Lengths
from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Kind, Pool
from carteiro.model import (
    EMAIL,
    ZERO,
    CancelAnswer,
    Claimed,
    DeadReason,
    Deferred,
    Delivery,
    End,
    EventType,
    Late,
    Lease,
    LeasedJob,
    MessageId,
    Outcome,
    RecipientId,
    RedriveAnswer,
    Sent,
    Settled,
    State,
    Taken,
)
from carteiro.path.confirm import VALIDATIONS, confirm
from carteiro.policy.retry import RetryPolicy
from carteiro.ports import Handover, Parcel, Store
from carteiro.providers.sandbox.provider import REPLIES
from support.builders import ACME, BRASA, TASK, a_failure
from support.clock import past
from support.steps import claimed, claimed_alone, declare
from support.working import (
    A_WHILE,
    GATEWAY,
    LONG,
    Gate,
    Office,
    Through,
    a_kind,
    always,
    an_office,
    logged,
    until_done,
)

SHORT = timedelta(seconds=1)

BEGUN = ["RECEIVED", "VALIDATED", "SENT_ATTEMPT"]
FAILED_ONCE = [*BEGUN, "RETRY_SCHEDULED"]
IN_DOUBT_ONCE = [*BEGUN, "IN_DOUBT", "RETRY_SCHEDULED"]
SENT = [*BEGUN, "SENT"]
USED_UP = [*(4 * FAILED_ONCE), *BEGUN, "FAILED"]

# For each line of the sandbox's list: an address, the events after ENQUEUED, the reason of its
# death.
ENDS: dict[str, tuple[str, list[str], DeadReason | None]] = {
    "ok": ("ok", SENT, None),
    "throttle-N": ("throttle-3", [*(3 * FAILED_ONCE), *SENT], None),
    "greylist": ("greylist", [*(2 * FAILED_ONCE), *SENT], None),
    "timeout": ("timeout", USED_UP, DeadReason.MAX_ATTEMPTS_EXCEEDED),
    "bounce-550": ("bounce-550", [*BEGUN, "FAILED"], DeadReason.PERMANENT_ERROR),
    "full-552": ("full-552", USED_UP, DeadReason.MAX_ATTEMPTS_EXCEEDED),
    "reject": ("reject", [*BEGUN, "FAILED"], DeadReason.PERMANENT_ERROR),
    "slow-SECONDS": ("slow-0.001", SENT, None),
    "lost-reply": (
        "lost-reply",
        [*IN_DOUBT_ONCE, *BEGUN, "IN_DOUBT", "FAILED"],
        DeadReason.IN_DOUBT,
    ),
    "random-PERCENT": ("random-100", USED_UP, DeadReason.MAX_ATTEMPTS_EXCEEDED),
}

CODES = {
    "timeout": "SANDBOX_TIMEOUT",
    "bounce-550": "550",
    "full-552": "552",
    "reject": "SES_MESSAGE_REJECTED",
    "lost-reply": "SANDBOX_TIMEOUT",
    "random-PERCENT": "421",
}


def email_pool(kind: Kind, *, slots: int = 5) -> Pool:
    """The pool of the one kind."""
    return Pool("email", slots, (kind,))


# --- every result of a send -------------------------------------------------------------------


@pytest.mark.parametrize("reply", REPLIES)
async def test_every_address_of_the_sandbox_ends_as_documented(reply: str) -> None:
    """State, timeline, dead letter and delivery match the address."""
    local, story, reason = ENDS[reply]
    async with an_office() as office:
        message = await office.post(f"{local}@sandbox.test")

        await office.work()

        assert await office.story(message) == ["ENQUEUED", *story]
        assert await office.state(message) == story[-1]
        assert await office.dead_for(message) is reason
        row = await office.row(message)
        assert row.attempts == story.count("SENT_ATTEMPT")
        assert row.in_doubt == story.count("IN_DOUBT")
        assert (row.failure.code if row.failure else None) == CODES.get(reply)
        assert await office.deliveries(message) == story.count("SENT") + story.count("IN_DOUBT")


async def test_sent_message_has_its_provider_and_its_duration() -> None:
    """The ids in row and timeline, with the figures of the last attempt."""
    async with an_office() as office:
        message = await office.post()

        await office.work()

        row = await office.row(message)
        assert (row.provider, row.provider_id) == ("sandbox", f"sandbox-{message}-1")
        sent = await office.event(message, EventType.SENT)
        assert sent.metadata["sesMessageId"] == row.provider_id
        assert sent.metadata["attempt"] == 1
        assert sent.metadata["durationMs"] >= 0
        validated = await office.event(message, EventType.VALIDATED)
        assert validated.metadata == {"validations": list(VALIDATIONS)}
        begun = await office.event(message, EventType.SENT_ATTEMPT)
        assert begun.metadata == {"attempt": 1, "provider": "sandbox"}


async def test_dead_letter_counts_the_charged_failures() -> None:
    """Five 552s end in the dead letters, and are counted there."""
    async with an_office() as office:
        message = await office.post("full-552@sandbox.test")

        await office.work()

        letter = await office.letter(message)
        assert letter.failed_attempts == GATEWAY.max_attempts
        assert letter.failure.code == "552"
        failed = await office.event(message, EventType.FAILED)
        assert failed.metadata["willRetry"] is False
        assert failed.metadata["errorCode"] == "552"


async def test_messages_of_many_tenants_are_all_sent_once() -> None:
    """More than there are slots, claimed turn by turn."""
    async with an_office() as office:
        posted = [await office.post(tenant=tenant) for tenant in (ACME, BRASA) for _ in range(20)]

        await office.work()

        assert [await office.deliveries(message) for message in posted] == [1] * 40
        assert await office.backend.reading.states() == {State.SENT: 40}


# --- retry ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (
            RetryPolicy(max_attempts=5, base=timedelta(seconds=1), jitter=0),
            [1000, 2000, 4000, 8000],
        ),
        (RetryPolicy(max_attempts=2, table=(timedelta(seconds=3),), jitter=0), [3000]),
        (RetryPolicy(max_attempts=1), []),
    ],
)
async def test_policy_sets_delays_and_number_of_retries(
    policy: RetryPolicy, waits: list[int]
) -> None:
    """Each delay is recorded, kept by the queue, and none follows the last attempt."""
    async with an_office() as office:
        message = await office.post("full-552@sandbox.test")

        await office.work(email_pool(office.email_kind(policy=always(policy))))

        events = await office.events(message)
        retries = [each for each in events if each.type is EventType.RETRY_SCHEDULED]
        attempts = [each.at for each in events if each.type is EventType.SENT_ATTEMPT]
        assert [each.metadata["backoffDelay"] for each in retries] == waits
        gaps = [later - sooner for sooner, later in pairwise(attempts)]
        assert gaps == [timedelta(milliseconds=wait) for wait in waits]
        assert [each.metadata["nextAttemptNumber"] for each in retries] == [
            attempt for attempt, _ in enumerate(waits, 2)
        ]


async def test_policy_is_read_at_each_failure() -> None:
    """A change applies at once: the second failure follows the new one."""
    policies = iter([GATEWAY, GATEWAY])
    last = RetryPolicy(max_attempts=2)
    async with an_office() as office:
        message = await office.post("full-552@sandbox.test")

        await office.work(email_pool(office.email_kind(policy=lambda _job: next(policies, last))))

        assert (await office.row(message)).attempts == 2


async def test_retry_after_of_a_provider_lengthens_the_delay() -> None:
    answers: list[Outcome] = [Deferred(a_failure(), timedelta(minutes=3)), Taken("id")]

    async def provider(_parcel: Parcel, _handover: Handover) -> Outcome:
        return answers.pop(0)

    async with an_office() as office:
        message = await office.post()

        await office.work(email_pool(office.email_kind(deliver=provider)))

        retry = await office.event(message, EventType.RETRY_SCHEDULED)
        assert retry.metadata["backoffDelay"] == 180_000


async def test_call_after_its_deadline_is_repeated_uncharged() -> None:
    """A worker that slept between declare and hand-over delivered nothing and blames nobody."""

    async def late_once(parcel: Parcel, handover: Handover) -> Outcome:
        if parcel.attempt == 1:
            handover.deadline = 0.0
        handover.begin()
        return Taken("id")

    async with an_office() as office:
        message = await office.post()

        await office.work(email_pool(office.email_kind(deliver=late_once)))

        row = await office.row(message)
        assert (row.state, row.attempts, row.charged, row.in_doubt) == (State.SENT, 2, 0, 0)


class Stumbling(Through):
    """A store that fails unexpectedly on a certain id."""

    async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
        if any(isinstance(end.verdict, Sent) and end.verdict.provider_id == "odd" for end in ends):
            raise TypeError("not storable")
        return await super().settle(ends)


@pytest.mark.parametrize("identity", [12345, {"a": 1}, True, "odd"])
async def test_delivered_message_is_sent_once_despite_an_unexpected_error(identity: Any) -> None:
    """A bug after the delivery must not leave the attempt open, or it would be made again."""
    calls: list[int] = []

    async def provider(parcel: Parcel, handover: Handover) -> Outcome:
        handover.begin()
        calls.append(parcel.attempt)
        return Taken(identity)

    async with an_office() as office:
        message = await office.post()
        pool = email_pool(office.email_kind(deliver=provider))

        with logged() as lines:
            await office.work(pool, store=Stumbling(office.backend.store))

        row = await office.row(message)
        assert (row.state, row.attempts, row.in_doubt, calls) == (State.SENT, 1, 0, [1])
        assert [line["event"] for line in lines if line["level"] == "error"] == ["unexpected"]


# --- validation -------------------------------------------------------------------------------


async def _malformed(office: Office) -> MessageId:
    return await office.post_raw('{"to": "ok@sandbox.test"}')


async def _of_another_recipient(office: Office) -> MessageId:
    recipient = {"recipientId": "nobody", "email": "ok@sandbox.test"}
    return await office.post(recipient=recipient)


async def _without_an_address(office: Office) -> MessageId:
    return await office.post_raw('{"to": "nobody", "subject": "s", "text": "t"}')


async def _with_a_script(office: Office) -> MessageId:
    return await office.post(html="<p>hello</p><script>alert(1)</script>")


@pytest.mark.parametrize(
    ("post", "validation", "code"),
    [
        (_malformed, "INTEGRITY", "INVALID_PAYLOAD"),
        (_of_another_recipient, "RECIPIENT", "RECIPIENT_NOT_FOUND"),
        (_without_an_address, "RECIPIENT", "INVALID_EMAIL"),
        (_with_a_script, "TEMPLATE", "INVALID_TEMPLATE"),
    ],
)
async def test_invalid_message_is_dead_at_once(
    post: Callable[[Office], Awaitable[MessageId]], validation: str, code: str
) -> None:
    """Permanent, without any attempt; the timeline names the validation."""
    async with an_office() as office:
        message = await post(office)

        await office.work()

        assert await office.story(message) == [
            "ENQUEUED",
            "RECEIVED",
            "VALIDATION_FAILED",
            "FAILED",
        ]
        failed = await office.event(message, EventType.VALIDATION_FAILED)
        assert (failed.metadata["validation"], failed.metadata["errorCode"]) == (validation, code)
        letter = await office.letter(message)
        assert (letter.reason, letter.failed_attempts) == (DeadReason.VALIDATION_FAILED, 0)
        assert (await office.row(message)).attempts == 0


class Astray(Through):
    """A store whose queue hands out jobs that the ledger does not have as such."""

    def __init__(self, store: Store, **facts: Any) -> None:
        super().__init__(store)
        self.facts = facts

    async def claim(self, **asked: Any) -> Claimed:
        """Claim, and change what the ledger says."""
        got = await super().claim(**asked)
        return replace(got, jobs=[replace(job, **self.facts) for job in got.jobs])


@pytest.mark.parametrize("facts", [{"content": None}, {"ledger_tenant": BRASA}])
async def test_job_without_its_message_is_not_sent(facts: dict[str, Any]) -> None:
    """OUTBOX: the ledger has no such message, or has it for another tenant."""
    async with an_office() as office:
        message = await office.post()

        await office.work(store=Astray(office.backend.store, **facts))

        failed = await office.event(message, EventType.VALIDATION_FAILED)
        assert failed.metadata["validation"] == "OUTBOX"
        assert failed.metadata["errorCode"] == "OUTBOX_NOT_FOUND"
        assert await office.deliveries(message) == 0


async def test_deleted_recipient_gets_nothing() -> None:
    """It existed when the message was accepted, and was gone when it was claimed."""
    async with an_office() as office:
        recipient = {"externalId": "ana", "email": "ok@sandbox.test"}
        message = await office.post(recipient=recipient)
        known = (await office.row(message)).recipient_id
        assert known is not None
        await office.backend.recipients.delete(RecipientId(known), tenant=ACME)

        await office.work()

        assert (await office.letter(message)).failure.code == "RECIPIENT_NOT_FOUND"


# --- in doubt ---------------------------------------------------------------------------------


async def test_open_attempt_is_recorded_and_repeated() -> None:
    """A worker died in its call: the next one records the doubt in the commit before the resend."""
    async with an_office() as office:
        message = await office.post()
        await declare(office.backend.store, await claimed_alone(office.backend.store))
        office.clock.advance(past(LONG * 2))

        await office.work()

        story = ["ENQUEUED", *BEGUN, "IN_DOUBT", *SENT]
        assert await office.story(message) == story
        assert (await office.row(message)).in_doubt == 1


async def test_second_open_attempt_is_a_dead_letter() -> None:
    """One resend, then people decide; nothing more is sent."""
    async with an_office() as office:
        message = await office.post()
        for _ in range(2):
            await declare(office.backend.store, await claimed_alone(office.backend.store))
            office.clock.advance(past(LONG * 2))

        await office.work()

        assert await office.dead_for(message) is DeadReason.IN_DOUBT
        assert (await office.story(message))[-2:] == ["IN_DOUBT", "FAILED"]
        assert await office.deliveries(message) == 0


async def test_resend_in_doubt_is_a_dead_letter() -> None:
    """The open attempt counts, and so does the resend's own doubt."""
    async with an_office() as office:
        message = await office.post("lost-reply@sandbox.test")
        await declare(office.backend.store, await claimed_alone(office.backend.store))
        office.clock.advance(past(LONG * 2))

        await office.work()

        assert await office.deliveries(message) == 1
        assert (await office.row(message)).in_doubt == 2
        assert await office.dead_for(message) is DeadReason.IN_DOUBT


async def test_at_most_once_is_never_sent_again_in_doubt() -> None:
    """Handed over and unanswered: one delivery, one doubt, one dead letter."""
    async with an_office() as office:
        message = await office.post("lost-reply@sandbox.test", delivery="at_most_once")

        await office.work()

        assert await office.story(message) == ["ENQUEUED", *BEGUN, "IN_DOUBT", "FAILED"]
        assert await office.dead_for(message) is DeadReason.IN_DOUBT
        assert await office.deliveries(message) == 1


async def test_at_most_once_is_retried_if_nothing_was_handed_over() -> None:
    """A refusal proves that."""
    async with an_office() as office:
        message = await office.post("greylist@sandbox.test", delivery=Delivery.AT_MOST_ONCE)

        await office.work()

        assert await office.state(message) is State.SENT
        assert await office.deliveries(message) == 1


async def test_redriven_message_starts_without_doubts() -> None:
    """A person decided: a new round has its own resend."""
    async with an_office() as office:
        message = await office.post("lost-reply@sandbox.test")
        await office.work()

        answers = await office.backend.dead_letters.redrive([message], by="ana")
        await office.work()

        assert answers == [RedriveAnswer.REDRIVEN]
        assert (await office.story(message)).count("IN_DOUBT") == 4
        assert await office.dead_for(message) is DeadReason.IN_DOUBT


# --- cancel and expiry ------------------------------------------------------------------------


async def _cancelled_in_flight(office: Office, message: MessageId, answer: Outcome) -> None:
    """Cancel while the provider is being called; then let it answer so."""

    async def provider(_parcel: Parcel, _handover: Handover) -> Outcome:
        [said] = await office.backend.store.cancel([message], tenant=ACME)
        assert said is CancelAnswer.REQUESTED
        return answer

    await office.work(email_pool(office.email_kind(deliver=provider)))


async def test_success_in_flight_stays_a_success() -> None:
    """It was too late to cancel."""
    async with an_office() as office:
        message = await office.post()

        await _cancelled_in_flight(office, message, Taken("id"))

        assert await office.story(message) == ["ENQUEUED", *BEGUN, "CANCEL_REQUESTED", "SENT"]


async def test_retry_of_a_message_cancelled_in_flight_is_cancelled() -> None:
    """There is no dead letter either."""
    async with an_office() as office:
        message = await office.post()

        await _cancelled_in_flight(office, message, Deferred(a_failure()))

        assert await office.story(message) == ["ENQUEUED", *BEGUN, "CANCEL_REQUESTED", "CANCELLED"]
        assert await office.dead_for(message) is None


async def test_cancelled_open_attempt_is_not_sent_again() -> None:
    """The ledger refuses the declare; the doubt is recorded, and then it is CANCELLED."""
    async with an_office() as office:
        message = await office.post()
        await declare(office.backend.store, await claimed_alone(office.backend.store))
        await office.backend.store.cancel([message], tenant=ACME)
        office.clock.advance(past(LONG * 2))

        await office.work()

        assert await office.story(message) == [
            *("ENQUEUED", *BEGUN, "CANCEL_REQUESTED", "IN_DOUBT", "CANCELLED")
        ]
        assert await office.deliveries(message) == 0


async def test_overdue_message_is_expired_by_its_claimer() -> None:
    """No attempt, but a dead letter."""
    async with an_office() as office:
        message = await office.post(ttl=1000)
        office.clock.advance(timedelta(seconds=1))

        await office.work()

        assert await office.story(message) == ["ENQUEUED", "EXPIRED"]
        assert await office.dead_for(message) is DeadReason.EXPIRED


async def test_retry_after_the_expiry_expires_now() -> None:
    """Waiting would not help."""
    async with an_office() as office:
        message = await office.post("full-552@sandbox.test", ttl=2000)

        await office.work()

        assert (await office.story(message))[-1] == "EXPIRED"
        assert (await office.row(message)).attempts < GATEWAY.max_attempts
        assert (await office.letter(message)).failure.code == "552"


async def test_duration_of_an_attempt_counts_towards_the_time_to_live() -> None:
    """The remaining time is computed after the provider's answer, not at the claim."""
    policy = RetryPolicy(max_attempts=5, base=timedelta(milliseconds=6), jitter=0)

    async def slow(_parcel: Parcel, _handover: Handover) -> Outcome:
        await asyncio.sleep(0.003)
        return Deferred(a_failure())

    async with an_office() as office:
        message = await office.post(ttl=8)

        await office.work(email_pool(office.email_kind(deliver=slow, policy=always(policy))))

        assert (await office.row(message)).attempts == 1
        assert await office.dead_for(message) is DeadReason.EXPIRED


async def test_message_that_expires_between_claim_and_declare_is_not_sent() -> None:
    """The ledger refuses the attempt, and the worker ends it as expired."""
    async with an_office() as office:
        message = await office.post(ttl=1000)

        async def never(_parcel: Parcel, _handover: Handover) -> NoReturn:
            raise AssertionError

        def slow(job: LeasedJob) -> Confirmation:
            office.clock.advance(timedelta(seconds=1))
            return confirm(job)

        await office.work(email_pool(office.email_kind(deliver=never, confirm=slow)))

        assert await office.story(message) == ["ENQUEUED", "EXPIRED"]


# --- reassigned jobs --------------------------------------------------------------------------


class Slow(Through):
    """A store that answers one claim after its lease has ended."""

    def __init__(self, office: Office) -> None:
        super().__init__(office.backend.store)
        self.office = office
        self.lost: list[LeasedJob] = []

    async def claim(self, **asked: Any) -> Claimed:
        """Claim; the first time another worker claims the same before the answer."""
        got = await super().claim(**asked)
        if not self.lost:
            self.lost += got.jobs
            self.office.clock.advance(past(LONG))
            await claimed_alone(self.store)
        return got


async def test_reassigned_job_is_skipped() -> None:
    """A worker that was slow before its declare sends nothing, and releases nothing of another."""
    async with an_office() as office:
        message = await office.post()

        await office.work(store=Slow(office))

        assert await office.story(message) == ["ENQUEUED", *SENT]
        assert await office.deliveries(message) == 1


async def test_late_success_is_kept_as_evidence() -> None:
    """Its hold ran out during the call: the message is SENT nevertheless, and not sent again."""
    async with an_office() as office:
        message = await office.post()

        async def asleep(_parcel: Parcel, handover: Handover) -> Outcome:
            handover.begin()
            office.clock.advance(past(LONG + timedelta(seconds=10)))
            await office.backend.store.reap(limit=1)
            return Taken("late")

        await office.work(email_pool(office.email_kind(deliver=asleep)))

        assert await office.story(message) == ["ENQUEUED", *BEGUN, "LATE_RESULT", "SENT"]
        assert (await office.row(message)).provider_id == "late"


async def test_message_finished_meanwhile_is_acknowledged() -> None:
    """Cancelled between claim and declare: nothing is sent, nothing is left over."""
    async with an_office() as office:
        message = await office.post()
        kind = office.email_kind()
        worker = office.worker(email_pool(kind))
        job = await claimed_alone(office.backend.store)
        await office.backend.store.cancel([message], tenant=ACME)

        [slots] = worker._pools
        run = worker._runs[job.lease] = Run(job, slots, 0.0)
        worker._start(slots, [run], 1)
        await worker._all_left()

        assert await office.story(message) == ["ENQUEUED", "CANCELLED"]
        assert await office.deliveries(message) == 0


# --- jobs that kill their workers -------------------------------------------------------------


async def test_message_that_killed_five_workers_is_not_run() -> None:
    """The sixth claimer ends it."""
    async with an_office() as office:
        message = await office.post()
        for _ in range(5):
            await claimed_alone(office.backend.store)
            office.clock.advance(past(LONG))

        await office.work()

        assert await office.story(message) == ["ENQUEUED", "FAILED"]
        letter = await office.letter(message)
        assert (letter.reason, letter.failed_attempts) == (DeadReason.CRASHES_WORKER, 0)


async def test_suspect_runs_alone_in_its_process() -> None:
    """From the third claim on it waits for the others to end, and the others wait for it."""
    ran: list[tuple[str, int]] = []
    gate = Gate()

    async def watched(parcel: Parcel, handover: Handover) -> Outcome:
        ran.append((parcel.message, gate.inside))
        return await gate.deliver(parcel, handover)

    async with an_office() as office:
        suspect = await office.post(priority=9)
        for _ in range(2):
            await claimed_alone(office.backend.store)
            office.clock.advance(past(LONG))
        others = [await office.post() for _ in range(3)]
        task = await office.task()
        pools = (
            email_pool(office.email_kind(deliver=watched)),
            Pool("task", 5, (a_kind(watched),)),
        )
        working = asyncio.create_task(office.work(*pools))
        await gate.arrived.wait()
        await asyncio.sleep(A_WHILE)  # until the suspect is claimed, too
        assert suspect not in [message for message, _ in ran]
        after = await office.post()

        gate.open.set()
        await working

        assert (suspect, 0) in ran
        order = [message for message, _ in ran]
        assert order.index(suspect) > max(order.index(each) for each in (*others, task))
        assert order.index(after) > order.index(suspect)
        assert await office.backend.reading.states() == {State.SENT: 6}


async def test_two_suspects_run_one_after_the_other() -> None:
    """Each of them may be the one."""
    gate = Gate()
    async with an_office() as office:
        await office.post()
        await office.task()
        for _ in range(2):
            assert len(await claimed(office.backend.store, kinds=(EMAIL, TASK), lease=SHORT)) == 2
            office.clock.advance(past(SHORT))
            await office.backend.store.reap(limit=2)
        pools = (
            email_pool(office.email_kind(deliver=gate.deliver)),
            Pool("task", 5, (a_kind(gate.deliver),)),
        )
        working = asyncio.create_task(office.work(*pools))
        await gate.arrived.wait()
        await asyncio.sleep(A_WHILE)  # until both suspects are claimed

        gate.open.set()
        await working

        assert (len(gate.began), gate.most_inside) == (2, 1)


async def test_unexpected_error_affects_only_its_job_and_is_not_a_crash() -> None:
    """The process lives: the job is released uncounted, with a growing delay before its retry."""
    tries: list[int] = []

    def broken(job: LeasedJob) -> Confirmation:
        if "broken" in (job.content or ""):
            tries.append(job.claims)
            raise MemoryError
        return confirm(job)

    async with an_office() as office:
        bad = await office.post("broken@sandbox.test")
        good = await office.post()
        began = office.clock.at()
        worker = office.worker(email_pool(office.email_kind(confirm=broken)))
        working = asyncio.create_task(until_done(worker))
        while len(tries) < 7:
            await asyncio.sleep(0)

        worker.stop()
        await working

        assert await office.state(good) is State.SENT
        assert set(tries) == {1}
        assert office.clock.at() - began >= 6 * Lengths().lease  # released for a lease each time
        place = await office.backend.reading.place(bad)
        assert place is not None
        assert (place.claims, place.is_claimed) == (0, False)


@pytest.mark.parametrize(
    ("age", "wait"),
    [
        (timedelta(0), timedelta(seconds=30)),
        (timedelta(minutes=20), timedelta(minutes=10)),
        (timedelta(days=1), timedelta(hours=1)),
    ],
)
async def test_delay_after_unexpected_errors_grows_with_the_age_of_a_job(
    age: timedelta, wait: timedelta
) -> None:
    """Half its age, from a lease to an hour: a permanent bug is retried a few times a day."""
    waits: list[timedelta] = []

    class Watched(Through):
        async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
            waits.append(wait)
            worker.stop()
            await super().release(leases, wait=wait)

    def broken(_job: LeasedJob) -> Confirmation:
        raise MemoryError

    made = f"{int((time.time() - age.total_seconds()) * 1000):012x}"
    async with an_office() as office:
        await office.task(id=MessageId(f"{made[:8]}-{made[8:]}-7000-8000-000000000000"))
        pool = Pool("task", 1, (a_kind(Gate().deliver, confirm=broken),))
        worker = office.worker(pool, store=Watched(office.backend.store))

        await until_done(worker)

        assert waits == [pytest.approx(wait, abs=timedelta(seconds=20))]
