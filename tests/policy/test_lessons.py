"""Lessons: how much history it takes, and the messages that keep the usual policy."""

from collections import Counter
from datetime import timedelta

import pytest

from carteiro.model import History, Learned, MessageId
from carteiro.policy.history import slot_of
from carteiro.policy.lessons import LEAST, Lesson, is_spared, lesson_of
from support.builders import an_id

SECOND = timedelta(seconds=1)
_SOON, _LATER = slot_of(2_000), slot_of(30_000)
_VAIN = Learned("group", 400, 0, 0.0095)


def a_history(lost: list[int], sent: int = 0, in_a_row: int = LEAST) -> History:
    """Messages that were lost by day; on the last one, some were sent."""
    days = {day: Counter(lost=count) for day, count in enumerate(lost)}
    days[len(lost) - 1]["sent.2"] = sent
    return History(days, in_a_row)


@pytest.mark.parametrize(
    ("history", "count"),
    [
        (a_history([100] * 6), 400),
        (a_history([90_000, 100, 100, 100, 100, 5000]), 400),
        (a_history([500] * 7, sent=1), 2501),
    ],
    ids=["by six days", "without the two worst ones", "one of thousands was sent"],
)
def test_retries_are_in_vain(history: History, count: int) -> None:
    """The upper bound is below 1 %: that takes some 400 messages that were lost."""
    lesson = lesson_of("group", history)

    assert lesson is not None
    assert lesson.in_vain is not None
    assert (lesson.in_vain.group, lesson.in_vain.count) == ("group", count)
    assert lesson.in_vain.at_most < 0.01


@pytest.mark.parametrize(
    "history",
    [
        History(),
        a_history([95] * 6),
        a_history([100_000, 100_000]),
        a_history([100] * 6, sent=2),
        a_history([1000] * 6, in_a_row=LEAST - 1),
    ],
    ids=["nothing", "too few", "an outage of two days", "some were sent", "one was sent lately"],
)
def test_history_says_too_little(history: History) -> None:
    """Then the policy decides."""
    assert lesson_of("group", history) is None


def test_wasted_waits_are_known_by_slot() -> None:
    """Retries after two seconds send nothing, retries after thirty do; messages are sent, so none ends early."""
    failed = f"failed_after.{_SOON}"
    days = {
        day: Counter({failed: 100, f"sent_after.{_LATER}": 90, "sent.4": 90, "lost": 10})
        for day in range(6)
    }

    lesson = lesson_of("group", History(days, 3))

    assert lesson is not None
    assert lesson.in_vain is None
    assert lesson.wasted == {_SOON: Learned("group", 400, 0, 0.00951)}


def test_wait_that_is_wasted_becomes_the_next_that_is_not() -> None:
    """One of the policy's own later waits; without a better one it stays."""
    lesson = Lesson(wasted={_SOON: _VAIN})
    later = [3 * SECOND, 30 * SECOND, 120 * SECOND]

    assert lesson.instead_of(SECOND * 2, later) == (
        30 * SECOND,
        Learned("group", 400, 0, 0.0095, policy_wait=SECOND * 2),
    )
    assert lesson.instead_of(SECOND * 2, later[:1]) is None
    assert lesson.instead_of(SECOND * 30, later) is None
    assert lesson.instead_of(SECOND * 4, [SECOND]) is None


def test_some_messages_keep_the_usual_policy() -> None:
    """One in twenty, the same ones everywhere."""
    ids = [an_id() for _ in range(4000)]
    spared = [each for each in ids if is_spared(each)]

    assert 130 < len(spared) < 270
    assert all(is_spared(MessageId(str(each))) for each in spared)
