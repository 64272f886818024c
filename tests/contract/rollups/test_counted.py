"""Rollups, counted: each accept, attempt and end is counted once, by what was stored."""

from datetime import timedelta

from carteiro.model import Late, RedriveAnswer, Settled
from carteiro.model.figures import Figures
from carteiro.ports import Backend, Store
from support.builders import ACME, TASK, TTL, a_message, a_task, dead, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    accepted,
    attempted,
    claimed_alone,
    claimed_and_declared,
    settled,
)

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


async def _total(backend: Backend) -> Figures:
    """All figures of the last hour, without zeros."""
    return +await backend.rollups.total("minute", HOUR)


def _counts(figures: Figures) -> dict[str, int]:
    """Without times."""
    return {
        name: count
        for name, count in figures.items()
        if not name.endswith("_ms") and not name.startswith("delay.")
    }


async def test_usual_message_is_accepted_and_sent(backend: Backend, clock: StoreClock) -> None:
    """Once each; the time between them is its delay, of which it waited until its attempt began."""
    await accepted(backend.store, a_message(template_type="welcome"))
    clock.advance(3 * SECOND)
    job = await claimed_and_declared(backend.store)
    clock.advance(SECOND)
    await settled(backend.store, job, sent(), duration=SECOND)

    ended = {
        "sent": 1,
        "sent.1": 1,
        "ended.1": 1,
        "delay_ms": 4000,
        "delay.5": 1,
        "waits": 1,
        "wait_ms": 3000,
    }
    split = backend.rollups.split
    assert await _total(backend) == ended | {"accepted": 1}
    assert await split("template", "minute", HOUR, tenant=ACME) == {
        "welcome": ended | {"accepted": 1}
    }
    assert await split("tenant", "minute", HOUR) == {ACME: ended | {"accepted": 1}}
    assert await split("provider", "minute", HOUR) == {"sandbox": ended}


async def test_task_counts_as_an_email(backend: Backend, clock: StoreClock) -> None:
    """Its attempts are counted when they end."""
    await accepted(backend.store, a_task())
    job = await claimed_alone(backend.store, kinds=[TASK])
    await settled(backend.store, job, retry(SECOND), attempted=True)
    clock.advance(SECOND)
    job = await claimed_alone(backend.store, kinds=[TASK])
    await settled(backend.store, job, sent(), attempted=True)

    counts = {"accepted": 1, "retried": 1, "ended.1": 1, "ended.2": 1, "sent": 1, "sent.2": 1}
    more = {"waits": 1, "pauses": 1, "error.TRANSIENT_ERROR.421": 1}
    assert _counts(await _total(backend)) == counts | more


async def test_scheduled_message_has_no_delay_before_its_time(
    backend: Backend, clock: StoreClock
) -> None:
    """Its delay begins when it was to be sent."""
    await accepted(backend.store, a_message(due=clock.at(60 * SECOND)))
    clock.advance(61 * SECOND)
    await attempted(backend.store, sent())

    assert (await _total(backend))["delay_ms"] == 1000


async def test_pause_lasts_until_the_next_attempt_begins(
    backend: Backend, clock: StoreClock
) -> None:
    """Planned for a minute, and begun two seconds late."""
    await accepted(backend.store, a_message())
    await attempted(backend.store, retry(60 * SECOND))
    clock.advance(62 * SECOND)
    await attempted(backend.store, sent())

    figures = await _total(backend)
    assert (figures["pauses"], figures["pause_ms"]) == (1, 62_000)
    assert (figures["sent.2"], figures["delay_ms"]) == (1, 62_000)


async def test_dead_message_is_counted_by_code_and_attempt(backend: Backend) -> None:
    """As a failed attempt, and as a failed message."""
    await accepted(backend.store, a_message())
    await attempted(backend.store, dead())

    code = "PERMANENT_ERROR.550"
    assert _counts(await _total(backend)) == {
        "accepted": 1,
        "waits": 1,
        "ended.1": 1,
        "failed": 1,
        "failed.1": 1,
        f"error.{code}": 1,
        f"dead.{code}": 1,
    }


async def test_message_without_an_attempt_fails_without_one(
    backend: Backend, clock: StoreClock
) -> None:
    """It expires: no attempt has failed."""
    await accepted(backend.store, a_message())
    clock.advance(past(TTL))
    await backend.upkeep.expire(limit=10)

    counts = {"failed": 1, "failed.0": 1, "dead.TIMEOUT_ERROR.EXPIRED": 1}
    assert _counts(await _total(backend)) == counts


async def test_cancelled_message_is_neither_sent_nor_failed(backend: Backend) -> None:
    """Asked for twice, it is cancelled once."""
    [message] = await accepted(backend.store, a_message())
    await backend.store.cancel([message, message], tenant=ACME)
    await backend.store.cancel([message], tenant=ACME)

    assert _counts(await _total(backend)) == {"accepted": 1, "cancelled": 1}


async def test_replayed_message_is_accepted_once(backend: Backend) -> None:
    """A repetition adds nothing."""
    new = a_message()
    await backend.store.accept([new])
    await backend.store.accept([new, a_message()])

    assert await _total(backend) == {"accepted": 2}


async def test_repeated_settle_is_counted_once(backend: Backend) -> None:
    """The answer was lost, and the worker asks again; also with another message in the list."""
    await accepted(backend.store, a_message())
    job = await attempted(backend.store, sent())
    once = await _total(backend)
    assert isinstance(await settled(backend.store, job, sent()), Settled)

    assert await _total(backend) == once


async def test_late_result_is_counted_once(backend: Backend, clock: StoreClock) -> None:
    """The slow worker's attempt ended without a result; the message is sent by the second attempt, once."""
    store = backend.store
    slow, quick = await _reassigned(store, clock)
    assert isinstance(await settled(store, slow, sent("late")), Late)
    assert isinstance(await settled(store, quick, sent("in time")), Settled)
    assert isinstance(await settled(store, slow, sent("late")), Late)

    counts = _counts(await _total(backend))
    assert counts == {"accepted": 1, "ended.1": 1, "ended.2": 1, "sent": 1, "sent.2": 1}


async def _reassigned(store: Store, clock: StoreClock):  # type: ignore[no-untyped-def]  # noqa: ANN202
    await accepted(store, a_message())
    slow = await claimed_and_declared(store)
    clock.advance(past(HOLD))
    return slow, await claimed_and_declared(store)


async def test_redriven_message_has_not_failed(backend: Backend, clock: StoreClock) -> None:
    """It is taken back from the minute in which it failed; its end counts."""
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    clock.advance(60 * SECOND)
    [answer] = await backend.dead_letters.redrive([message], by="ana")
    assert answer is RedriveAnswer.REDRIVEN
    redriven = await _total(backend)
    await attempted(backend.store, sent())

    assert [redriven[name] for name in ("failed", "failed.1", "dead.PERMANENT_ERROR.550")] == [
        0
    ] * 3
    assert redriven["redriven"] == 1
    figures = await _total(backend)
    assert (figures["failed"], figures["sent"], figures["sent.2"]) == (0, 1, 1)


async def test_dead_message_that_was_sent_has_not_failed(
    backend: Backend, clock: StoreClock
) -> None:
    """The result of its first attempt comes after the second one failed for good."""
    slow, quick = await _reassigned(backend.store, clock)
    await settled(backend.store, quick, dead())
    await settled(backend.store, slow, sent("late"))

    figures = await _total(backend)
    assert (figures["failed"], figures["failed.2"], figures["sent"]) == (0, 0, 1)
    assert figures["error.PERMANENT_ERROR.550"] == 1
