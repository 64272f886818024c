"""Key figures: each from its counters, with its goal, and none from nothing."""

from collections import Counter

import pytest

from carteiro.model.figures import Figures, Kpi
from carteiro.policy.kpis import by_attempt, kpis


def _named(figures: Figures) -> dict[str, Kpi]:
    return {each.name: each for each in kpis(figures)}


def test_nothing_is_computed_from_nothing() -> None:
    """No figure, no verdict; not 0 %."""
    told = kpis(Counter(accepted=5, cancelled=2))

    assert [(each.figure, each.is_met, each.count) for each in told] == [(None, None, 0)] * 5
    assert by_attempt(Counter()) == []


@pytest.mark.parametrize(
    ("sent", "failed", "is_met"), [(99, 1, True), (98, 2, False), (97, 3, False), (1, 0, True)]
)
def test_final_delivery_must_be_above_its_goal(sent: int, failed: int, is_met: bool) -> None:
    """98 of 100 are not more than 98 %; the finally failed are the rest."""
    told = _named(Counter(sent=sent, failed=failed))

    assert told["final_delivery"].figure == sent / (sent + failed)
    assert told["finally_failed"].figure == failed / (sent + failed)
    assert (told["final_delivery"].is_met, told["finally_failed"].is_met) == (is_met, is_met)
    assert told["final_delivery"].count == sent + failed


def test_mean_time_to_delivery_is_over_sent_messages() -> None:
    """Five minutes are not less than five minutes."""
    quick = _named(Counter(sent=2, delay_ms=599_999))["mean_time_to_delivery"]
    slow = _named(Counter(sent=2, delay_ms=600_000, failed=10))["mean_time_to_delivery"]

    assert (quick.figure, quick.is_met) == (299.9995, True)
    assert (slow.figure, slow.is_met) == (300.0, False)


def test_recovery_is_of_messages_whose_first_attempt_failed() -> None:
    """Sent at once, or failed without an attempt: not among them."""
    figures = Counter({"sent.1": 50, "sent.2": 8, "sent.10": 1, "failed.0": 7, "failed.1": 1})
    told = _named(figures | Counter(sent=59, failed=8))["recovery"]

    assert (told.figure, told.count, told.is_met) == (0.9, 10, False)


def test_success_by_attempt() -> None:
    """Of the attempts with each number."""
    told = by_attempt(Counter({"ended.1": 10, "sent.1": 7, "ended.2": 3}))

    assert [(each.attempt, each.count, each.sent, each.share) for each in told] == [
        (1, 10, 7, 0.7),
        (2, 3, 0, 0.0),
    ]


def test_mean_time_between_attempts_has_no_goal() -> None:
    """It depends on the retry policy."""
    told = _named(Counter(pauses=2, pause_ms=3000))["mean_time_between_attempts"]

    assert (told.figure, told.goal, told.is_met) == (1.5, None, None)


def test_failure_taken_back_from_before_the_range_is_not_negative() -> None:
    """The hour in which it failed may be pruned."""
    told = _named(Counter(sent=1, failed=-1))

    assert (told["final_delivery"].figure, told["finally_failed"].figure) == (1.0, 0.0)
