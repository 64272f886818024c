"""The pace of a redrive: a canary, a doubling rate, and the reasons to stop."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carteiro.model import Course, MessageId, Ramp, RedriveResult, RedriveState, Watched
from carteiro.policy.ramp import (
    MOST_WATCHED,
    PAGE,
    PATIENCE,
    Go,
    Halt,
    Wait,
    expected,
    judged,
    next_move,
    result_of,
    resumed,
)

SECOND = 1000
MINUTE = 60 * SECOND
RAMP = Ramp(canary=5, first_rate=10, max_rate=35, max_failed=0.2)


def a_course(**figures: Any) -> Course:
    """A course; ``figures`` are its fields, and those of the step count for the whole, too."""
    for name in ("redriven", "sent", "failed", "cancelled", "late"):
        figures.setdefault(name, figures.get(f"step_{name}", 0))
    return Course(**figures)


def play(ramp: Ramp, total: int, *, until: int, every: int = 100) -> list[tuple[int, int]]:
    """The times and numbers of messages that are redriven, if each is sent at once."""
    course, moves = Course(), []
    for now in range(0, until, every):
        move = next_move(ramp, course, now)
        if isinstance(move, Go):
            count = min(move.count, total - course.redriven)
            moves.append((now, count))
            course = replace(
                move.course,
                redriven=course.redriven + count,
                step_redriven=move.course.step_redriven + count,
                sent=course.sent + count,
                step_sent=move.course.step_sent + count,
                is_read=course.redriven + count == total,
            )
    return moves


def test_rate_holds_if_asked_again_at_once() -> None:
    """Also if its pace has a part of a millisecond: that does not mean that the clock was set back."""
    course = a_course(rate=0.7, step_redriven=1)

    assert next_move(RAMP, course, 0) == Wait(1429)


def test_canary_goes_first_and_alone() -> None:
    """Nothing follows before all of it has results."""
    assert next_move(RAMP, Course(), 0) == Go(5, Course())
    for known in range(5):
        course = a_course(step_redriven=5, step_sent=known)
        assert next_move(RAMP, course, MINUTE) == Wait(), known


def test_rate_doubles_up_to_its_maximum() -> None:
    """Ten seconds at each."""
    moves = play(RAMP, 10_000, until=60 * SECOND)
    spans = [(0, 1), (1, 10), (10, 20), (20, 30), (30, 40), (40, 50)]
    numbers = [
        sum(count for at, count in moves if first * SECOND <= at < last * SECOND)
        for first, last in spans
    ]

    canary, first, second, third, *rest = numbers
    assert 5 <= canary <= 5 + 11
    assert 80 <= first <= 100
    assert 180 <= second <= 220
    assert 320 <= third <= 380
    assert all(330 <= each <= 370 for each in rest)


def test_slow_rate_sends_one_at_a_time() -> None:
    """Half a message a second is one in two seconds."""
    ramp = Ramp(canary=1, first_rate=0.5, max_rate=0.5)
    moves = play(ramp, 100, until=21 * SECOND)

    times = [at for at, _ in moves]
    assert [count for _, count in moves] == [1] * len(moves)
    assert times == [0, 100, *range(2100, 21 * SECOND, 2 * SECOND)]


def test_clock_that_steps_back_stops_nothing() -> None:
    """It goes on at its rate from there."""
    course = a_course(rate=10.0, step_redriven=5, step_sent=5, step_at=MINUTE)

    move = next_move(RAMP, course, 0)

    assert isinstance(move, Go)
    assert move.count == 1
    after = replace(move.course, redriven=6, step_redriven=6)
    assert next_move(RAMP, after, 0) == Wait(100)


def test_wait_for_the_rate_says_how_long() -> None:
    """So that a one-shot process need not poll."""
    course = a_course(rate=10.0, step_redriven=5, step_sent=5, step_at=0)

    assert next_move(RAMP, course, 450) == Wait(50)
    assert next_move(RAMP, course, 500) == Go(1, course)


def test_next_step_waits_for_half_of_the_results() -> None:
    """Workers that are slower than the rate are waited for."""
    course = a_course(rate=10.0, step_redriven=100, step_sent=49, step_at=0)
    move = next_move(RAMP, replace(course, step_sent=50), MINUTE)

    assert next_move(RAMP, course, MINUTE) == Wait()
    assert isinstance(move, Go)
    assert (move.course.rate, move.course.step_at, move.course.step_sent) == (20, MINUTE, 0)


def test_page_and_watched_messages_are_bounded() -> None:
    """However fast the rate is."""
    ramp = Ramp(max_rate=100_000)
    course = a_course(rate=100_000.0, redriven=5, sent=5)

    move = next_move(ramp, course, MINUTE)
    full = next_move(ramp, replace(course, redriven=5 + MOST_WATCHED), MINUTE)
    nearly = next_move(ramp, replace(course, redriven=MOST_WATCHED), MINUTE)

    assert move == Go(PAGE, course)
    assert full == Wait()
    assert isinstance(nearly, Go)
    assert nearly.count == 5


def test_open_circuit_stops_it() -> None:
    """Each provider is named."""
    assert next_move(RAMP, Course(), 0, {"ses", "smtp"}) == Halt(
        RedriveState.STOPPED, "The circuit of provider ses, smtp is open."
    )


@pytest.mark.parametrize(
    ("sent", "failed", "reason"),
    [
        (0, 1, None),
        (4, 1, None),
        (0, 2, "2 of 2 failed again, more than 20%."),
        (3, 2, "2 of 5 failed again, more than 20%."),
        (80, 20, None),
        (80, 21, "21 of 101 failed again, more than 20%."),
    ],
)
def test_share_of_failures_stops_it(sent: int, failed: int, reason: str | None) -> None:
    """Of the results, and of at least as many as the canary has: one early failure is not all of them."""
    course = a_course(rate=20.0, step_redriven=150, step_sent=sent, step_failed=failed)

    move = next_move(RAMP, course, MINUTE)

    if reason is None:
        assert not isinstance(move, Halt)
    else:
        assert move == Halt(RedriveState.STOPPED, reason)


def test_hanging_canary_pauses_it() -> None:
    """It may be sent later: the redrive has not failed, and does not go on by itself."""
    course = a_course(step_redriven=5, step_sent=3, step_late=2)

    assert next_move(RAMP, course, MINUTE) == Halt(
        RedriveState.PAUSED, "2 of 5 did not end within 10 minutes: they wait, or are retried."
    )


def test_few_late_messages_do_not_pause_it() -> None:
    """A receiver that makes senders wait is usual."""
    course = a_course(step_redriven=5, step_sent=4, step_late=1)

    assert isinstance(next_move(RAMP, course, MINUTE), Go)


def test_it_finishes_after_the_last_result() -> None:
    """Failures no longer matter when nothing is left to redrive."""
    course = a_course(step_redriven=5, step_failed=4, is_read=True)

    assert next_move(RAMP, course, MINUTE) == Wait()
    assert next_move(RAMP, replace(course, sent=1), MINUTE, {"ses"}) == Halt(RedriveState.FINISHED)


def test_message_is_late_after_a_while() -> None:
    """Unless it has ended."""
    waits = Watched(MessageId("m"), 1, 0, None, None)
    length = PATIENCE // timedelta(milliseconds=1)

    assert result_of(waits, length - 1) is None
    assert result_of(waits, length) is RedriveResult.LATE
    assert result_of(replace(waits, result=RedriveResult.SENT), length) is RedriveResult.SENT


def test_message_sent_while_the_clock_was_ahead_is_late() -> None:
    """Else the redrive waits until that moment comes again."""
    length = PATIENCE // timedelta(milliseconds=1)

    assert result_of(Watched(MessageId("m"), 1, length - 1, None, None), 0) is None
    assert result_of(Watched(MessageId("m"), 1, length, None, None), 0) is RedriveResult.LATE


def test_results_of_an_earlier_run_do_not_count_for_the_step() -> None:
    """The resumed redrive is judged by its own canary."""
    course = resumed(a_course(redriven=7, step_redriven=7, step_failed=2, rate=20.0), MINUTE)
    old, new = (Watched(MessageId("m"), run, 0, None, None) for run in (1, 2))

    after = judged(course, [(old, RedriveResult.FAILED), (new, RedriveResult.SENT)])

    assert (course.run, course.rate, course.step_redriven, course.step_failed) == (2, 0, 0, 0)
    assert (after.failed, after.sent) == (3, 1)
    assert (after.step_failed, after.step_sent) == (0, 1)


@pytest.mark.parametrize(
    ("total", "ramp", "seconds"),
    [
        (0, Ramp(), 0),
        (5, Ramp(), 0),
        (105, Ramp(), 10),
        (305, Ramp(), 20),
        (105, Ramp(first_rate=1, max_rate=1), 100),
    ],
)
def test_expected_time_follows_the_ramp(total: int, ramp: Ramp, seconds: int) -> None:
    """The canary's own time is not known."""
    assert expected(total, ramp) == timedelta(seconds=seconds)
