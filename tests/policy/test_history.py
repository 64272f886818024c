"""Histories: what they add up, and for how long."""

from collections import Counter

from carteiro.model import History, TenantId
from carteiro.policy import history
from carteiro.policy.history import DAY_MS, LEAST_DAYS, Result, messages, with_results
from carteiro.policy.lessons import lesson_of

_TODAY = 20_000


def a_result(day: int, **figures: int) -> Result:
    """Results of a group on one day."""
    named = Counter({name.replace("_", "."): count for name, count in figures.items()})
    return Result(day * DAY_MS, TenantId("acme"), "group", named)


def test_a_clock_that_ran_ahead_does_not_end_a_history() -> None:
    """A day of next year would be the latest one for a year, and all days until then too old to be kept."""
    ahead = _TODAY + 365
    known = with_results(History(), [a_result(ahead, lost=3)], ahead * DAY_MS)

    for day in range(_TODAY, _TODAY + 3):
        known = with_results(known, [a_result(day, lost=2)], day * DAY_MS)

    assert sorted(known.days) == [_TODAY, _TODAY + 1, _TODAY + 2]


def test_losses_are_taken_back_whatever_the_order_of_days() -> None:
    """A dead letter of a day that turned out to be sent does not count as lost because of the days after it."""
    told = [a_result(_TODAY - 1, lost=5), a_result(_TODAY, lost=-3)]

    for results in (told, told[::-1]):
        assert messages(with_results(History(), results, _TODAY * DAY_MS)) == (2, 0)


def test_a_history_with_less_than_nothing_teaches_nothing() -> None:
    """Losses may be taken back after their group was forgotten: an error would cost all tenants their lessons."""
    told = [a_result(_TODAY - 3, sent_2=2), a_result(_TODAY - 2, lost=-1)]
    told += [a_result(_TODAY - 1, lost=300), a_result(_TODAY, lost=300)]
    known = with_results(History(), told, _TODAY * DAY_MS)

    assert known.lost_in_a_row == 600
    assert lesson_of("group", known) is None


def test_many_results_of_a_fold_are_added_in_one_go() -> None:
    """Others wait for a fold: the days of a history are looked through once, not for each of thousands of results."""
    full = [a_result(_TODAY - age, sent_2=1, failed_3=1) for age in range(LEAST_DAYS)]
    known = with_results(History(), full, _TODAY * DAY_MS)
    looked_through = []

    def counting(days: object, last: int) -> dict[int, Counter[str]]:
        looked_through.append(last)
        return usual(days, last)  # type: ignore[arg-type]

    usual, history._latest = history._latest, counting
    try:
        known = with_results(known, [a_result(_TODAY, sent_2=1)] * 1000, _TODAY * DAY_MS)
    finally:
        history._latest = usual

    assert looked_through == [_TODAY]
    assert known.days[_TODAY]["sent.2"] == 1001
