"""Limits: the headers of Resend's answers are obeyed, and its delays are kept."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from carteiro.model import Deferred, NotMade, Taken
from carteiro.providers.resend.pace import Pace, asked_wait
from support.resend_sending import an_account
from support.resend_twin import Say
from support.sending import sent


def told(limit: int, remaining: int, reset: float) -> dict[str, str]:
    """The headers of an answer."""
    return {
        "ratelimit-limit": str(limit),
        "ratelimit-remaining": str(remaining),
        "ratelimit-reset": str(reset),
    }


def test_calls_without_a_limit_do_not_wait() -> None:
    """No limit was announced."""
    pace = Pace()
    pace.heard({}, 200, 0.0)

    assert [pace.take(0.0) for _ in range(100)] == [0.0] * 100


def test_remaining_calls_are_used_and_then_the_window_is_awaited() -> None:
    """The next window has the whole limit again."""
    pace = Pace()
    pace.take(10.0)
    pace.heard(told(3, 2, 0.5), 200, 10.0)

    assert [pace.take(10.1) for _ in range(3)] == [0.0, 0.0, pytest.approx(0.4)]
    assert [pace.take(10.5) for _ in range(4)] == [0.0, 0.0, 0.0, 1.0]


def test_answer_with_fewer_remaining_calls_is_believed() -> None:
    """Others use the limit, too; one with more may be older."""
    pace = Pace()
    pace.heard(told(10, 9, 1), 200, 0.0)

    pace.heard(told(10, 0, 1), 200, 0.1)
    pace.heard(told(10, 5, 1), 200, 0.2)

    assert pace.take(0.3) == pytest.approx(0.9)


@pytest.mark.parametrize("limit", [None, 2])
def test_refusal_delays_all_calls_for_its_duration(limit: int | None) -> None:
    """Also when it has no limit."""
    pace = Pace()
    headers = {"retry-after": "3"} | (told(limit, 0, 1) if limit else {})

    pace.heard(headers, 429, 0.0)

    assert pace.take(1.0) == pytest.approx(2.0)
    assert pace.take(3.0) == 0.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "7", "ratelimit-reset": "1"}, 7),
        ({"ratelimit-reset": "2"}, 2),
        ({"retry-after": "-7"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "9" * 400}, 0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 -0000"}, 0),
        ({}, 0),
    ],
)
def test_retry_after_is_read_in_any_form(headers: dict[str, str], seconds: float) -> None:
    """A number of seconds, or a date; nonsense is ignored."""
    assert asked_wait(headers) == timedelta(seconds=seconds)


def test_retry_after_may_be_a_date() -> None:
    """HTTP allows both."""
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)

    assert timedelta(minutes=59) < asked_wait({"retry-after": date}) <= timedelta(hours=1)


@pytest.mark.parametrize("said", ["9999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_delay_is_never_longer_than_a_day(said: str) -> None:
    """A message waits for a day at most; this process for a minute, then it calls again."""
    pace = Pace()
    pace.heard({"retry-after": said}, 429, 0.0)
    full = Pace()
    full.heard(told(2, 0, 9_999_999), 200, 0.0)

    assert asked_wait({"retry-after": said}) == timedelta(days=1)
    assert pace.take(0.0) == full.take(0.0) == 60.0


async def test_rate_limited_message_comes_back_at_its_time() -> None:
    """The policy's own delay may be longer, never shorter."""
    async with an_account(Say("rate_limit_exceeded", headers=(("retry-after", "3600"),))) as (
        twin,
        provider,
    ):
        refused = await sent(provider)
        held = await sent(provider)

    assert isinstance(refused, Deferred)
    assert refused.retry_after == timedelta(hours=1)
    assert isinstance(held, NotMade)  # no call was made: it would have been refused, too
    assert timedelta(seconds=50) < held.wait <= timedelta(minutes=1), "then it is asked again"
    assert held.failure.code == "RESEND_RATE_LIMIT_EXCEEDED"
    assert len(twin.requests) == 1


async def test_burst_is_spread_over_windows_once_the_limit_is_known() -> None:
    """No call of it is refused: those beyond the limit waited for the next window."""
    async with an_account(per_second=5) as (twin, provider):
        first = await sent(provider)
        others = await asyncio.gather(*[sent(provider) for _ in range(7)])

    assert {type(outcome) for outcome in (first, *others)} == {Taken}
    assert len(twin.deliveries) == 8


async def test_quota_is_awaited_for_its_duration() -> None:
    """Daily and monthly quotas are not a fault of the message."""
    async with an_account(per_day=1) as (twin, provider):
        await sent(provider)
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert outcome.failure.code == "RESEND_DAILY_QUOTA_EXCEEDED"
    assert len(twin.deliveries) == 1
