"""The pace of a redrive: a canary, then a doubling rate while its messages are sent.

Pure: times come from the caller, in milliseconds.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import TypeAlias

from carteiro.model import (
    MILLISECOND,
    Course,
    Ramp,
    RedriveResult,
    RedriveState,
    Watched,
    value,
)

PAGE = 100  # messages in one transaction: others that write wait for it
MOST_WATCHED = 1000  # messages without a result
PATIENCE = timedelta(minutes=10)  # for the result of a message
STEP_S = 10  # of redriving at one rate
_PATIENCE_MS = PATIENCE // MILLISECOND


@value
class Go:
    """Redrive at most ``count`` messages, and continue with this course."""

    count: int
    course: Course


@value
class Wait:
    """Nothing to do now; ``ms``: until the rate allows the next message, None: until there are results."""

    ms: int | None = None


@value
class Halt:
    """The redrive has ended, or cannot go on; ``reason`` says why."""

    state: RedriveState
    reason: str | None = None


Move: TypeAlias = Go | Wait | Halt


def next_move(ramp: Ramp, course: Course, now: int, open_circuits: Collection[str] = ()) -> Move:
    """Decide what a running redrive does now; ``open_circuits`` are those of the providers of its messages."""
    if course.is_read:
        return Wait() if course.watched else Halt(RedriveState.FINISHED, _left_out(course))
    trouble = _trouble(ramp, course, open_circuits)
    if trouble is not None:
        return trouble
    size = _step_size(ramp, course)
    if course.step_redriven >= size:
        if _step_results(course) < (size if not course.rate else ceil(size / 2)):
            return Wait()
        rate = min(ramp.max_rate, 2 * course.rate or ramp.first_rate)
        course = _stepped(course, max(now, _next_at(course)), rate)
        size = _step_size(ramp, course)
    if course.rate and _next_at(course) - now > ceil(1000 / course.rate):  # the clock was set back
        course = replace(course, step_at=course.step_at - (_next_at(course) - now))
    if course.rate and (wait := _next_at(course) - now) > 0:
        return Wait(wait)
    due = size
    if course.rate:
        due = min(size, 1 + int(course.rate * (now - course.step_at) / 1000))
    count = min(due - course.step_redriven, MOST_WATCHED - course.watched, PAGE)
    return Go(count, course) if count > 0 else Wait()


def _next_at(course: Course) -> int:
    """The time from which the rate allows one more message."""
    pace = 1000 / course.rate if course.rate else 0
    return course.step_at + ceil(pace * course.step_redriven)


def _trouble(ramp: Ramp, course: Course, open_circuits: Collection[str]) -> Halt | None:
    if open_circuits:
        names = ", ".join(sorted(open_circuits))
        return Halt(RedriveState.STOPPED, f"The circuit of provider {names} is open.")
    ended = course.step_sent + course.step_failed
    if course.step_failed > ramp.max_failed * max(ramp.canary, ended):
        text = f"{course.step_failed} of {ended} failed again, more than {ramp.max_failed:.0%}."
        return Halt(RedriveState.STOPPED, text)
    known = ended + course.step_late
    if course.step_late > ramp.max_failed * max(ramp.canary, known):
        minutes = PATIENCE // timedelta(minutes=1)
        text = f"{course.step_late} of {known} did not end within {minutes} minutes: they wait, or are retried."
        return Halt(RedriveState.PAUSED, text)
    return None


def _left_out(course: Course) -> str | None:
    if not course.left_out:
        return None
    return f"{course.left_out} were left out: their tenants were paused or disabled."


def _step_size(ramp: Ramp, course: Course) -> int:
    """The number of messages of the current step."""
    return max(ramp.canary, min(ceil(course.rate * STEP_S), MOST_WATCHED))


def _step_results(course: Course) -> int:
    return course.step_sent + course.step_failed + course.step_cancelled + course.step_late


def _stepped(course: Course, now: int, rate: float) -> Course:
    return replace(
        course,
        rate=rate,
        step_at=now,
        step_redriven=0,
        step_sent=0,
        step_failed=0,
        step_cancelled=0,
        step_late=0,
    )


def resumed(course: Course, now: int) -> Course:
    """The course of a redrive that starts again, with a canary; results of messages before it do not count for it."""
    return replace(_stepped(course, now, 0.0), run=course.run + 1)


def result_of(watched: Watched, now: int) -> RedriveResult | None:
    """The result of a message; one that does not end in time is late, also if the clock was ahead when it was sent."""
    if watched.result is None and abs(now - watched.at) >= _PATIENCE_MS:
        return RedriveResult.LATE
    return watched.result


def judged(course: Course, results: Iterable[tuple[Watched, RedriveResult]]) -> Course:
    """The course with these results, each counted once."""
    counts: Counter[str] = Counter()
    for watched, result in results:
        counts[result] += 1
        counts[f"step_{result}"] += watched.run == course.run
    return replace(course, **{name: getattr(course, name) + n for name, n in counts.items()})


def expected(total: int, ramp: Ramp) -> timedelta:
    """The time that a redrive takes, if all are sent and workers keep up."""
    left, seconds, rate = total - ramp.canary, 0.0, ramp.first_rate
    while left > 0:
        rate = min(rate, ramp.max_rate)
        step = max(ramp.canary, min(rate * STEP_S, MOST_WATCHED))
        size = left if rate == ramp.max_rate else min(left, step)
        seconds += size / rate
        left -= ceil(size)
        rate *= 2
    return timedelta(seconds=ceil(seconds))
