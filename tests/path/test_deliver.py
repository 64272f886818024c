"""Every behaviour of a provider yields an outcome."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import pytest

from carteiro.errors import DeliveryFailed
from carteiro.jobs.kind import Deliver
from carteiro.model import Deferred, Failure, NotMade, Outcome, Rejected, Taken, Unknown
from carteiro.path.deliver import TimeLimits, deliver
from carteiro.ports.provider import Handover, Parcel
from support.builders import a_failure
from support.hostile_errors import HOSTILE
from support.working import LONG, a_kind, a_parcel

A_MOMENT = timedelta(milliseconds=20)
OVER = timedelta(0)


async def delivered(
    provider: Deliver, *, limit: timedelta = LONG, call_limit: timedelta | None = LONG
) -> Outcome:
    """The outcome of one call."""
    kind = a_kind(provider, provider="ses", call_limit=call_limit)
    return await deliver(kind, a_parcel(), Handover(limit), TimeLimits())


def raising(error: BaseException, *, begun: bool) -> Deliver:
    """A provider that breaks, before or after the hand-over."""

    async def provider(_parcel: Parcel, handover: Handover) -> NoReturn:
        if begun:
            handover.begin()
        raise error

    return provider


def silent(*, begun: bool) -> Deliver:
    """A provider that never answers."""

    async def provider(_parcel: Parcel, handover: Handover) -> NoReturn:
        if begun:
            handover.begin()
        await asyncio.Event().wait()
        raise AssertionError

    return provider


def failure_of(outcome: Outcome) -> Failure:
    """The failure of an outcome."""
    assert not isinstance(outcome, Taken)
    return outcome.failure


@pytest.mark.parametrize("call_limit", [LONG, None])
@pytest.mark.parametrize(
    "answer", [Taken("id"), Rejected(a_failure()), Deferred(a_failure()), NotMade(a_failure())]
)
async def test_answer_is_the_outcome(answer: Outcome, call_limit: timedelta | None) -> None:
    """Unchanged, with a timeout and without."""

    async def provider(_parcel: Parcel, _handover: Handover) -> Outcome:
        return answer

    assert await delivered(provider, call_limit=call_limit) is answer


@pytest.mark.parametrize("begun", [False, True])
async def test_failure_classified_by_the_provider_stands(begun: bool) -> None:
    """It is an answer: never unknown, also after the hand-over began."""
    for_now, for_good = a_failure(), a_failure("550", retryable=False)

    deferred = await delivered(raising(DeliveryFailed(for_now), begun=begun))
    rejected = await delivered(raising(DeliveryFailed(for_good), begun=begun))

    assert deferred == Deferred(for_now)
    assert rejected == Rejected(for_good)


async def test_code_of_a_task_can_be_stored() -> None:
    """Its column cannot hold every character in every store."""
    failure = a_failure("MY\0CODE", reason="")

    said = await delivered(raising(DeliveryFailed(failure), begun=True))

    assert said == Deferred(a_failure("MY CODE", reason="MY CODE"))


@pytest.mark.parametrize(("begun", "outcome"), [(False, Deferred), (True, Unknown)])
async def test_silence_is_classified_by_the_stage(begun: bool, outcome: type) -> None:
    """Before the hand-over nothing was handed over; after it the result is unknown."""
    said = await delivered(silent(begun=begun), limit=A_MOMENT)

    assert isinstance(said, outcome)
    assert failure_of(said).code == "SES_TIMEOUT"


@pytest.mark.parametrize(("begun", "outcome"), [(False, Deferred), (True, Unknown)])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("it broke"), "TASK_ERROR"),
        (ConnectionResetError("gone"), "TASK_ERROR"),
        (TimeoutError(), "SES_TIMEOUT"),
    ],
)
async def test_exception_is_classified_by_the_stage(
    begun: bool, outcome: type, error: Exception, code: str
) -> None:
    """A provider that breaks is one more way to fail."""
    said = await delivered(raising(error, begun=begun), call_limit=None)

    assert isinstance(said, outcome)
    assert failure_of(said).code == code
    assert failure_of(said).retryable


@pytest.mark.parametrize(("begun", "outcome"), [(False, Deferred), (True, Unknown)])
@pytest.mark.parametrize(
    "name", [each for each in HOSTILE if not each.startswith(("failure", "text cancels"))]
)
async def test_hostile_exception_has_an_outcome(name: str, begun: bool, outcome: type) -> None:
    """Whatever its own code does when it is read."""
    said = await delivered(raising(HOSTILE[name](), begun=begun))

    assert isinstance(said, outcome)
    assert failure_of(said).code == "TASK_ERROR"


@pytest.mark.parametrize("name", [each for each in HOSTILE if each.startswith("failure")])
async def test_malformed_failure_is_an_ordinary_one(name: str) -> None:
    """A provider or task that classifies its error wrongly is tried again."""
    said = await delivered(raising(HOSTILE[name](), begun=True))

    assert isinstance(said, Deferred)
    assert said.failure.reason


async def test_interrupt_by_the_operator_ends_the_process() -> None:
    """It is not about the message."""
    with pytest.raises(KeyboardInterrupt):
        await delivered(raising(KeyboardInterrupt(), begun=True))


async def test_call_that_awaits_a_reply_has_more_time() -> None:
    """The deadline moves, and the first one ends nothing."""

    async def provider(_parcel: Parcel, handover: Handover) -> Outcome:
        handover.begin()
        handover.await_reply(LONG)
        await asyncio.sleep(3 * A_MOMENT.total_seconds())
        return Taken("id")

    assert await delivered(provider, limit=A_MOMENT) == Taken("id")


async def test_call_that_awaits_a_reply_may_have_less_time() -> None:
    """The deadline that the provider named counts."""

    async def provider(_parcel: Parcel, handover: Handover) -> NoReturn:
        handover.begin()
        handover.await_reply(A_MOMENT)
        await asyncio.Event().wait()
        raise AssertionError

    assert isinstance(await delivered(provider), Unknown)


async def test_call_after_its_deadline_is_not_made() -> None:
    """A process that slept past its deadline hands nothing over: nobody's failure."""
    handed_over: list[Parcel] = []

    async def provider(parcel: Parcel, handover: Handover) -> Outcome:
        handover.begin()
        handed_over.append(parcel)
        return Taken("id")

    said = await delivered(provider, limit=OVER)

    assert isinstance(said, NotMade)
    assert failure_of(said).code == "SES_TIMEOUT"
    assert handed_over == []


async def test_call_that_got_no_connection_in_time_was_not_made() -> None:
    """All connections of the provider are in use: the message is not charged for the wait."""

    async def provider(_parcel: Parcel, handover: Handover) -> NoReturn:
        handover.is_queued = True
        await asyncio.Event().wait()
        raise AssertionError

    said = await delivered(provider, limit=A_MOMENT)

    assert isinstance(said, NotMade)
    assert said.wait


@pytest.mark.parametrize(("begun", "outcome"), [(False, Deferred), (True, Unknown)])
async def test_cancelled_inner_wait_is_a_failure(begun: bool, outcome: type) -> None:
    """A provider whose awaited task is cancelled has failed; its job must still be settled."""
    said = await delivered(raising(asyncio.CancelledError(), begun=begun))

    assert isinstance(said, outcome)
    assert failure_of(said).original_code == "CancelledError"


async def test_own_cancellation_has_no_outcome() -> None:
    """A worker that stops drops the call; a declared attempt is in doubt."""
    call = asyncio.create_task(delivered(silent(begun=True)))
    await asyncio.sleep(0)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call


def given_up(outcome: Outcome) -> Outcome:
    """Custom rules applied to a failure with proof."""
    return Rejected(outcome.failure) if isinstance(outcome, Deferred) else outcome


async def test_custom_rules_apply_to_silence_with_proof() -> None:
    """A timeout before the hand-over is theirs; after it, the doubt stays."""
    proven, in_doubt = [
        await deliver(
            replace(a_kind(silent(begun=begun), call_limit=A_MOMENT), overrule=given_up),
            a_parcel(),
            Handover(A_MOMENT),
            TimeLimits(),
        )
        for begun in (False, True)
    ]

    assert isinstance(proven, Rejected)
    assert isinstance(in_doubt, Unknown)


async def test_calls_with_one_timer_end_at_their_own_deadlines() -> None:
    """The one that begins last may be the first to end, and a call that goes on keeps its time."""
    limits, ended = TimeLimits(), []

    async def call(limit: timedelta) -> None:
        await deliver(
            a_kind(silent(begun=False), call_limit=limit), a_parcel(), Handover(limit), limits
        )
        ended.append(limit)

    calls = [asyncio.create_task(call(limit)) for limit in (LONG, 10 * A_MOMENT, A_MOMENT)]
    await asyncio.gather(*calls[1:])

    assert ended == [A_MOMENT, 10 * A_MOMENT]
    assert not calls[0].done()
    calls[0].cancel()
