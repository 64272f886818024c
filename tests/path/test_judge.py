"""The verdict after an attempt, and the decision of a claimer before one."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import (
    EMAIL,
    ZERO,
    Category,
    ClaimId,
    Dead,
    DeadReason,
    Deferred,
    Delivery,
    Failure,
    Learned,
    Lease,
    LeasedJob,
    MessageId,
    NotMade,
    Outcome,
    Rejected,
    Retry,
    Scope,
    Sent,
    Taken,
    TenantId,
    Unknown,
    Verdict,
)
from carteiro.path.judge import MOST_CLAIMS, doubts, is_orphan, judge, judge_claim, may_kill
from carteiro.policy.classify import classify_smtp
from carteiro.policy.history import slot_of
from carteiro.policy.lessons import Lesson
from carteiro.policy.retry import PRESETS, RetryPolicy

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
GATEWAY = PRESETS["gateway"]


def a_failure(scope: Scope = Scope.MESSAGE) -> Failure:
    """A failure reported by a provider."""
    return Failure(
        code="421",
        category=Category.TRANSIENT_ERROR,
        retryable=True,
        scope=scope,
        reason="421 not now",
        rule="smtp.code.421",
    )


def judged(outcome: Outcome, **facts: Any) -> Verdict:
    """The verdict on a first attempt with the gateway preset, unless the facts say otherwise."""
    usual: dict[str, Any] = {
        "provider": "ses",
        "charged_before": 0,
        "in_doubt_before": 0,
        "delivery": Delivery.AT_LEAST_ONCE,
        "policy": GATEWAY,
        "expires_in": DAY,
        "chance": 0.5,
    }
    return judge(outcome, **usual | facts)


def a_job(**facts: Any) -> LeasedJob:
    """A job claimed for the first time, unless the facts say otherwise."""
    usual: dict[str, Any] = {
        "lease": Lease(MessageId("m"), ClaimId("c")),
        "kind": EMAIL,
        "tenant": TenantId("acme"),
        "claims": 1,
        "content": "{}",
        "ledger_tenant": TenantId("acme"),
        "request_id": "r",
        "delivery": Delivery.AT_LEAST_ONCE,
        "attempts": 0,
        "charged": 0,
        "in_doubt": 0,
        "revision": 1,
        "open_attempt": False,
        "expires_in": DAY,
    }
    return LeasedJob(**usual | facts)


def reason_of(verdict: Verdict | None) -> DeadReason | None:
    """The reason of its death; None if it is not dead."""
    return verdict.reason if isinstance(verdict, Dead) else None


# --- after an attempt -------------------------------------------------------------------------


def test_accepted_message_is_sent() -> None:
    """The provider's id is kept with its name."""
    assert judged(Taken("0100018c")) == Sent("ses", "0100018c")


@pytest.mark.parametrize("said", ["queued\0as 17", "queued\ud800as 17", " queued\r\nas 17\x1b"])
def test_id_of_a_provider_can_be_stored(said: str) -> None:
    """Otherwise an accepted mail would be sent again and again."""
    assert judged(Taken(said)) == Sent("ses", "queued as 17")


def test_rejected_message_is_dead_at_once_and_charged() -> None:
    """A permanent error has at least one failed attempt, whatever its cause."""
    failure = a_failure(Scope.PROVIDER)
    policy = RetryPolicy(max_attempts=5, charge="message")

    verdict = judged(Rejected(failure), policy=policy)

    assert verdict == Dead(DeadReason.PERMANENT_ERROR, failure, charged=True)


@pytest.mark.parametrize(("charged_before", "seconds"), [(0, 1), (1, 2), (2, 4), (3, 8)])
def test_deferred_message_is_retried_after_the_delay_of_its_failure(
    charged_before: int, seconds: int
) -> None:
    """The delay is that of the attempt that just failed."""
    verdict = judged(Deferred(a_failure()), charged_before=charged_before)

    assert verdict == Retry(seconds * SECOND, charged=True, failure=a_failure())


@pytest.mark.parametrize(
    ("preset", "last"),
    [
        ("gateway", 5),
        ("classic", 5),
        ("development", 3),
        ("pipeline", 5),
        ("transactional", 4),
        ("tickets", 3),
    ],
)
def test_last_attempt_schedules_no_retry(preset: Any, last: int) -> None:
    """The last allowed failure is a dead letter, the one before is not."""
    policy = PRESETS[preset]

    last_but_one = judged(Deferred(a_failure()), policy=policy, charged_before=last - 2)
    verdict = judged(Deferred(a_failure()), policy=policy, charged_before=last - 1)

    assert isinstance(last_but_one, Retry)
    assert verdict == Dead(DeadReason.MAX_ATTEMPTS_EXCEEDED, a_failure(), charged=True)


def test_uncharged_failure_never_uses_up_the_attempts() -> None:
    """With charge "message" a provider's failure does not count."""
    policy = RetryPolicy(max_attempts=5, base=SECOND, charge="message")

    verdict = judged(Deferred(a_failure(Scope.PROVIDER)), policy=policy, charged_before=4)

    assert verdict == Retry(8 * SECOND, charged=False, failure=a_failure(Scope.PROVIDER))


def test_reduced_policy_applies_at_the_next_failure() -> None:
    """The policy is read at each failure; more failures than it allows are too many, charged or not."""
    policy = RetryPolicy(max_attempts=3, charge="message")

    verdict = judged(Deferred(a_failure(Scope.PROVIDER)), policy=policy, charged_before=4)

    assert reason_of(verdict) is DeadReason.MAX_ATTEMPTS_EXCEEDED


@pytest.mark.parametrize(
    ("expires_in", "waits"),
    [(DAY, 120 * SECOND), (120 * SECOND, SECOND), (121 * SECOND, 120 * SECOND)],
)
def test_patience_lengthens_a_delay_and_ends_no_message(
    expires_in: timedelta, waits: timedelta
) -> None:
    """If the message would expire before, the delay of the preset applies."""
    greylisted = classify_smtp("451 4.7.1 Greylisted")
    policy = replace(GATEWAY, is_patient=True, jitter=0)

    verdict = judged(Deferred(greylisted), policy=policy, expires_in=expires_in)

    assert verdict == Retry(waits, charged=True, failure=greylisted)


@pytest.mark.parametrize(("retry_after", "seconds"), [(30, 30), (1, 4), (0, 4)])
def test_retry_after_only_lengthens(retry_after: int, seconds: int) -> None:
    """It applies when it is longer than the policy's own delay."""
    outcome = Deferred(a_failure(), retry_after * SECOND)

    verdict = judged(outcome, charged_before=2)

    assert verdict == Retry(seconds * SECOND, charged=True, failure=a_failure())


@pytest.mark.parametrize("asked", [DAY, 2 * DAY])
def test_retry_after_beyond_the_expiry_is_ignored(asked: timedelta) -> None:
    """A wrong header must not end a message that has all its time left."""
    verdict = judged(Deferred(a_failure(), asked), expires_in=DAY)

    assert verdict == Retry(SECOND, charged=True, failure=a_failure())


def test_call_that_was_not_made_is_retried_within_a_minute() -> None:
    """For any requested delay: nothing expires without an attempt."""
    verdict = judged(NotMade(a_failure(), 3650 * DAY))

    assert isinstance(verdict, Retry)
    assert verdict.after == 60 * SECOND


@pytest.mark.parametrize(
    "outcome", [Rejected(a_failure()), Deferred(a_failure()), NotMade(a_failure())]
)
@pytest.mark.parametrize("wait", [ZERO, 3 * SECOND])
def test_failure_with_another_provider_left_is_not_charged(
    outcome: Outcome, wait: timedelta
) -> None:
    """Nor given up, after any number of failures."""
    verdict = judged(outcome, charged_before=4, elsewhere=wait)

    assert isinstance(verdict, Retry)
    assert (verdict.after, verdict.charged) == (wait, False)


def test_possibly_accepted_message_goes_to_no_other_provider() -> None:
    """With any chain."""
    unknown = Unknown(a_failure())

    assert judged(unknown, elsewhere=ZERO) == judged(unknown)


def test_call_that_was_not_made_is_retried_uncharged_after_its_own_delay() -> None:
    """It is nobody's failure, even after the last but one."""
    verdict = judged(NotMade(a_failure(), 7 * SECOND), charged_before=4)

    assert verdict == Retry(7 * SECOND, charged=False, failure=a_failure())


@pytest.mark.parametrize(
    ("outcome", "charged"),
    [
        (Deferred(a_failure()), True),
        (Deferred(a_failure(), SECOND), True),
        (NotMade(a_failure(), SECOND), False),
        (Unknown(a_failure()), False),
    ],
)
def test_retry_after_the_expiry_expires_now(outcome: Outcome, charged: bool) -> None:
    """A retry at the very moment of expiry is too late, one millisecond before is not."""
    in_time = judged(outcome, expires_in=SECOND + timedelta(milliseconds=1))
    too_late = judged(outcome, expires_in=SECOND)

    assert in_time == Retry(SECOND, charged, a_failure())
    assert too_late == Dead(DeadReason.EXPIRED, a_failure(), charged=charged)


@pytest.mark.parametrize("outcome", [Taken("id"), Rejected(a_failure())])
def test_final_answer_stands_also_after_expiry(outcome: Outcome) -> None:
    """A running send does not expire."""
    assert judged(outcome, expires_in=-DAY) == judged(outcome)


def test_unknown_outcome_is_resent_once_and_then_dead() -> None:
    """At least once: one resend, uncharged; the second doubt is for people."""
    first = judged(Unknown(a_failure()), charged_before=2)
    second = judged(Unknown(a_failure()), charged_before=2, in_doubt_before=1)

    assert first == Retry(2 * SECOND, charged=False, failure=a_failure())
    assert second == Dead(DeadReason.IN_DOUBT, a_failure())


def test_policy_sets_the_number_of_resends() -> None:
    """None at all, or many."""
    never = RetryPolicy(max_attempts=5, max_in_doubt_resends=0)
    thrice = RetryPolicy(max_attempts=5, max_in_doubt_resends=3)

    assert reason_of(judged(Unknown(a_failure()), policy=never)) is DeadReason.IN_DOUBT
    assert isinstance(judged(Unknown(a_failure()), policy=thrice, in_doubt_before=2), Retry)
    last = judged(Unknown(a_failure()), policy=thrice, in_doubt_before=3)
    assert reason_of(last) is DeadReason.IN_DOUBT


@pytest.mark.parametrize("expires_in", [DAY, ZERO])
def test_at_most_once_never_resends_an_unknown_outcome(expires_in: timedelta) -> None:
    """It is in doubt, not expired: people must know that."""
    verdict = judged(Unknown(a_failure()), delivery=Delivery.AT_MOST_ONCE, expires_in=expires_in)

    assert verdict == Dead(DeadReason.IN_DOUBT, a_failure())


@pytest.mark.parametrize("delivery", Delivery)
def test_replay_is_repeated_like_a_failure(delivery: Delivery) -> None:
    """It cannot be a second delivery: same number, growing delays, then for people; never charged."""
    replay: dict[str, Any] = {"delivery": delivery, "replays_in": DAY}

    verdicts = [
        judged(Unknown(a_failure()), in_doubt_before=before, **replay)
        for before in range(GATEWAY.max_attempts)
    ]

    waits = [1, 1, 2, 4]
    expected = [Retry(wait * SECOND, charged=False, failure=a_failure()) for wait in waits]
    assert verdicts == [*expected, Dead(DeadReason.IN_DOUBT, a_failure())]


def test_resend_too_late_for_a_replay_is_a_second_delivery() -> None:
    """The very moment at which a key is forgotten is too late."""
    once: dict[str, Any] = {"delivery": Delivery.AT_MOST_ONCE}

    in_time = judged(Unknown(a_failure()), replays_in=SECOND + timedelta(milliseconds=1), **once)
    too_late = judged(Unknown(a_failure()), replays_in=SECOND, **once)

    assert isinstance(in_time, Retry)
    assert reason_of(too_late) is DeadReason.IN_DOUBT


@pytest.mark.parametrize("outcome", [Deferred(a_failure()), NotMade(a_failure())])
def test_at_most_once_retries_if_nothing_was_handed_over(outcome: Outcome) -> None:
    """A refusal, and a call that never began, prove that."""
    assert isinstance(judged(outcome, delivery=Delivery.AT_MOST_ONCE), Retry)


def test_unknown_kind_of_outcome_is_refused() -> None:
    """A new kind needs a decision here, and must not fall into an old one."""
    nothing: Any = object()

    with pytest.raises(AssertionError):
        judged(nothing)


@given(
    outcome=st.sampled_from(
        [
            Taken("id"),
            Rejected(a_failure()),
            Deferred(a_failure(), SECOND),
            Deferred(a_failure(Scope.PROVIDER)),
            NotMade(a_failure()),
            Unknown(a_failure()),
        ]
    ),
    policy=st.sampled_from([*PRESETS.values(), RetryPolicy(max_attempts=5, charge="message")]),
    delivery=st.sampled_from(Delivery),
    charged_before=st.integers(0, 20),
    in_doubt_before=st.integers(0, 5),
    expires_in=st.timedeltas(-DAY, DAY),
    replays_in=st.timedeltas(-SECOND, DAY),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_retry_keeps_every_limit(outcome: Outcome, policy: RetryPolicy, **facts: Any) -> None:
    """It comes before expiry, leaves an attempt to make, and never repeats what may not be repeated."""
    verdict = judged(outcome, policy=policy, **facts)

    if isinstance(verdict, Retry):
        assert ZERO <= verdict.after < facts["expires_in"]
        assert not isinstance(outcome, Taken | Rejected)
        if isinstance(outcome, Deferred):
            assert facts["charged_before"] + verdict.charged < policy.max_attempts
        if isinstance(outcome, Unknown) and verdict.after < facts["replays_in"]:
            assert facts["in_doubt_before"] + 1 < policy.max_attempts
        elif isinstance(outcome, Unknown):
            assert facts["delivery"] is Delivery.AT_LEAST_ONCE
            assert facts["in_doubt_before"] < policy.max_in_doubt_resends


# --- before an attempt ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"claims": MOST_CLAIMS}, None),
        ({"claims": MOST_CLAIMS + 1}, DeadReason.CRASHES_WORKER),
        ({"claims": MOST_CLAIMS + 1, "expires_in": ZERO}, DeadReason.CRASHES_WORKER),
        ({"expires_in": ZERO}, DeadReason.EXPIRED),
        ({"expires_in": -SECOND}, DeadReason.EXPIRED),
        ({"expires_in": timedelta(milliseconds=1)}, None),
        ({"in_doubt": 1}, None),
        ({"in_doubt": 1, "claims": MOST_CLAIMS + 1}, DeadReason.CRASHES_WORKER),
        ({"delivery": Delivery.AT_MOST_ONCE}, None),
    ],
)
def test_claimer_without_an_open_attempt(facts: dict[str, Any], reason: DeadReason | None) -> None:
    """It runs the job, unless that killed too many workers or its time is over."""
    assert reason_of(judge_claim(a_job(**facts), GATEWAY)) is reason


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, None),
        ({"in_doubt": 1}, DeadReason.IN_DOUBT),
        ({"delivery": Delivery.AT_MOST_ONCE}, DeadReason.IN_DOUBT),
        ({"delivery": Delivery.AT_MOST_ONCE, "expires_in": ZERO}, DeadReason.IN_DOUBT),
        ({"delivery": Delivery.AT_MOST_ONCE, "claims": 99}, DeadReason.IN_DOUBT),
        ({"in_doubt": 1, "expires_in": ZERO, "claims": 99}, DeadReason.IN_DOUBT),
        ({"expires_in": ZERO}, DeadReason.EXPIRED),
        ({"claims": MOST_CLAIMS + 1}, None),
        ({"claims": MOST_CLAIMS + 2}, DeadReason.CRASHES_WORKER),
    ],
)
def test_claimer_that_finds_an_open_attempt(
    facts: dict[str, Any], reason: DeadReason | None
) -> None:
    """It resends at once while the policy allows; a resend that keeps killing workers ends too."""
    job = a_job(open_attempt=True, **{"claims": 2} | facts)

    assert reason_of(judge_claim(job, GATEWAY)) is reason


def test_doubtful_attempts_are_not_counted_as_crashes() -> None:
    """A policy that allows many resends is not cut short by the count of claims."""
    patient = RetryPolicy(max_attempts=5, max_in_doubt_resends=20)

    verdict = judge_claim(a_job(open_attempt=True, in_doubt=9, claims=11), patient)

    assert verdict is None


def test_message_that_kills_workers_has_their_number() -> None:
    """The dead letter warns people before a redrive."""
    verdict = judge_claim(a_job(claims=6), GATEWAY)

    assert isinstance(verdict, Dead)
    assert verdict.failure.code == "CRASHES_WORKER"
    assert verdict.failure.category is Category.PERMANENT_ERROR
    assert "5 claims" in verdict.failure.reason
    assert not verdict.charged


@given(
    claims=st.integers(1, 20),
    in_doubt=st.integers(0, 5),
    open_attempt=st.booleans(),
    delivery=st.sampled_from(Delivery),
    expires_in=st.timedeltas(-DAY, DAY),
)
def test_running_job_meets_every_condition(**facts: Any) -> None:
    """Not expired, not at most once in doubt, not too often in doubt or claimed."""
    job = a_job(**facts)

    if judge_claim(job, GATEWAY) is None:
        assert job.expires_in > ZERO
        assert job.claims <= MOST_CLAIMS + doubts(job)
        assert not (job.open_attempt and job.delivery is Delivery.AT_MOST_ONCE)
        assert not (job.open_attempt and doubts(job) > GATEWAY.max_in_doubt_resends)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (1, (False, False)),
        (2, (True, False)),
        (3, (False, True)),
        (5, (False, True)),
        (6, (False, False)),
    ],
)
def test_a_job_is_an_orphan_first_and_then_a_suspect(
    claims: int, expected: tuple[bool, bool]
) -> None:
    """Left once, by a worker that had others with it; left again. After five claims it is not run any more."""
    job = a_job(claims=claims)

    assert (is_orphan(job), may_kill(job)) == expected


@pytest.mark.parametrize(
    ("in_doubt", "open_attempt", "expected"), [(0, False, 0), (0, True, 1), (2, True, 3)]
)
def test_open_attempt_is_a_doubt(in_doubt: int, open_attempt: bool, expected: int) -> None:
    """The ledger counts it only when the next attempt or the verdict is written."""
    assert doubts(a_job(in_doubt=in_doubt, open_attempt=open_attempt)) == expected


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("delivery", Delivery)
def test_claimer_resolves_a_doubt_by_a_replay(delivery: Delivery, is_open: bool) -> None:
    """For a new doubt and for an old one, with any delivery guarantee."""
    job = a_job(open_attempt=is_open, in_doubt=2, claims=3, delivery=delivery)

    assert judge_claim(job, GATEWAY, replays_in=SECOND) is None


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("delivery", "in_doubt"), [(Delivery.AT_MOST_ONCE, 1), (Delivery.AT_LEAST_ONCE, 2)]
)
def test_claimer_too_late_for_a_replay_leaves_the_doubt_to_people(
    delivery: Delivery, in_doubt: int, is_open: bool
) -> None:
    """A retry was due in time and its worker was not: sent now, it would be a second delivery."""
    job = a_job(open_attempt=is_open, in_doubt=in_doubt, claims=2, delivery=delivery)

    assert reason_of(judge_claim(job, GATEWAY, replays_in=ZERO)) is DeadReason.IN_DOUBT
    assert reason_of(judge_claim(job, GATEWAY, replays_in=-SECOND)) is DeadReason.IN_DOUBT


# --- lessons from history ---------------------------------------------------------------------

IN_VAIN = Lesson(in_vain=Learned("group", 400, 0, 0.0095))
TOO_SOON = Lesson(wasted={slot_of(1_000): Learned("group", 400, 0, 0.0095)})


def test_vain_retry_is_not_made() -> None:
    """A dead letter at once, with the evidence; without a retry there is nothing to save."""
    assert judged(Deferred(a_failure()), lesson=IN_VAIN) == Dead(
        DeadReason.MAX_ATTEMPTS_EXCEEDED, a_failure(), charged=True, learned=IN_VAIN.in_vain
    )
    last = judged(Deferred(a_failure()), charged_before=4, lesson=IN_VAIN)
    assert last == judged(Deferred(a_failure()), charged_before=4)


def test_wasted_wait_becomes_a_later_one_of_the_policy() -> None:
    """The first that is not wasted; never beyond the message's life, never a shorter one."""
    verdict = judged(Deferred(a_failure()), lesson=TOO_SOON)
    assert isinstance(verdict, Retry)
    assert verdict.after == 8 * SECOND
    assert verdict.learned == replace(TOO_SOON.wasted[slot_of(1_000)], policy_wait=SECOND)

    usual = judged(Deferred(a_failure()))
    assert judged(Deferred(a_failure()), lesson=TOO_SOON, expires_in=8 * SECOND) == usual
    assert judged(Deferred(a_failure(), DAY / 2), lesson=TOO_SOON) == Retry(
        DAY / 2, charged=True, failure=a_failure()
    )


@pytest.mark.parametrize(
    "outcome",
    [Taken("id"), Rejected(a_failure()), Unknown(a_failure()), NotMade(a_failure())],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("lesson", [IN_VAIN, TOO_SOON], ids=["in vain", "too soon"])
def test_lesson_is_about_deferred_messages(outcome: Outcome, lesson: Lesson) -> None:
    """It settles no doubt, and ends nothing that was not tried."""
    assert judged(outcome, lesson=lesson) == judged(outcome)


def test_lesson_does_not_forbid_another_provider() -> None:
    """Failover comes first."""
    elsewhere = judged(Deferred(a_failure()), lesson=IN_VAIN, elsewhere=ZERO)
    assert elsewhere == Retry(ZERO, charged=False, failure=a_failure())
