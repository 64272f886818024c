"""Alerts: each condition just short of its threshold, and just beyond."""

from collections import Counter
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.config import load
from carteiro.model.alerts import Finding
from carteiro.model.figures import Figures, TemplateResult
from carteiro.model.reports import QueueReport, Report
from carteiro.policy.alert_values import Seen, Thresholds
from carteiro.policy.alerts import MOST_SUBJECTS, definitions, holding
from carteiro.policy.rollups import DELAYS
from support.builders import ACME, BRASA

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
THRESHOLDS = load(environ={}).alerts.thresholds
UNDER_5_MINUTES = DELAYS.index(300_000)
QUIET = Seen(
    now=NOW,
    minutes={},
    yesterday=Counter(),
    templates=[],
    dead=0,
    dead_by_tenant=[],
    last_upkeep=None,
    reports=[],
)


def _minute(**figures: int) -> dict[datetime, Figures]:
    return {NOW - MINUTE: Counter({name.replace("_of_", "."): n for name, n in figures.items()})}


def _delays(soon: int, late: int) -> dict[datetime, Figures]:
    slots = {f"delay.{UNDER_5_MINUTES}": soon, f"delay.{UNDER_5_MINUTES + 1}": late}
    return {NOW - MINUTE: Counter(slots)}


def _ages(*seconds: int) -> dict[datetime, Figures]:
    return {
        NOW - (number + 1) * MINUTE: Counter(max_queue_age_ms=age * 1000)
        for number, age in enumerate(seconds)
    }


def _errors(**categories: int) -> Figures:
    return Counter({f"error.{name}.{name}": number for name, number in categories.items()})


def _queue(**told: Any) -> list[Report]:
    return [Report("a", {}, QueueReport(**told)), Report("b", {}), Report("c", {}, QueueReport())]


def _open(**since: timedelta) -> list[Report]:
    circuits = {name: NOW - each for name, each in since.items()}
    return [Report("a", {"smtp": NOW}), Report("b", circuits)]


# Alert, what is seen at the threshold, what is seen beyond it, and the value there.
_SHARE = {"min_messages": 20}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "ManyDeadLetters": ({"dead": 100}, {"dead": 101}, 101),
    "DeadLetterShareHigh": (
        {"minutes": _minute(sent=98, failed=2)},
        {"minutes": _minute(sent=97, failed=3)},
        0.03,
    ),
    "TenantManyDeadLetters": (
        {"dead_by_tenant": [(ACME, 50)]},
        {"dead_by_tenant": [(BRASA, 51), (ACME, 50)]},
        51,
    ),
    "FailureRateHigh": (
        {"minutes": _minute(ended_of_1=60, ended_of_2=40, error_of_A=10)},
        {"minutes": _minute(ended_of_1=60, ended_of_2=40, error_of_A=5, error_of_B=6)},
        0.11,
    ),
    "TemplateFails": (
        {"templates": [TemplateResult(ACME, "welcome", 10, 10)]},
        {"templates": [TemplateResult(ACME, "welcome", 9, 11)]},
        0.55,
    ),
    "ErrorMixChanged": (
        {"minutes": {NOW: _errors(A=70, B=30)}, "yesterday": _errors(A=100)},
        {"minutes": {NOW: _errors(A=69, B=31)}, "yesterday": _errors(A=100)},
        0.31,
    ),
    "DeliverySlow": ({"minutes": _delays(95, 5)}, {"minutes": _delays(94, 6)}, 400),
    "QueueAgeHigh": ({"minutes": _ages(120, 120)}, {"minutes": _ages(130, 130)}, 130),
    "TableQueuePending": ({"table_queue_pending": 50}, {"table_queue_pending": 51}, 51),
    "SchedulerSilent": (
        {"last_upkeep": NOW - 10 * MINUTE},
        {"last_upkeep": NOW - 10 * MINUTE - SECOND},
        601,
    ),
    "CircuitOpen": (
        {"reports": _open(ses=5 * MINUTE)},
        {"reports": _open(ses=5 * MINUTE + SECOND)},
        301,
    ),
    "StoreUnreachable": (
        {"reports": _queue(away_since=NOW)},  # others reach it
        {"reports": _queue(away_since=NOW)[:2]},
        1,
    ),
    "QueueMemoryHigh": (
        {"reports": _queue(used_bytes=80, max_bytes=100)},
        {"reports": _queue(used_bytes=81, max_bytes=100)},
        0.81,
    ),
    "QueueMemoryCritical": (
        {"reports": _queue(used_bytes=90, max_bytes=100)},
        {"reports": _queue(used_bytes=91, max_bytes=100)},
        0.91,
    ),
    "QueueConnectionsRejected": (
        {"reports": _queue(rejected=0)},
        {"reports": _queue(rejected=1)},
        1,
    ),
    "QueueOutOfMemory": (
        {"reports": _queue(out_of_memory=0)},
        {"reports": _queue(out_of_memory=2)},
        2,
    ),
}
SUBJECTS = {
    "TenantManyDeadLetters": BRASA,
    "TemplateFails": f"{ACME}/welcome",
    "CircuitOpen": "ses",
}


def _found(alert: str, thresholds: Thresholds = THRESHOLDS, **seen: Any) -> list[Finding]:
    return [each for each in holding(replace(QUIET, **seen), thresholds) if each.alert == alert]


@pytest.mark.parametrize("alert", CASES)
def test_condition_holds_beyond_its_threshold_only(alert: str) -> None:
    """The finding has the value, and the threshold that it exceeds."""
    at, beyond, measured = CASES[alert]
    threshold = {each.name: each.threshold for each in definitions(THRESHOLDS)}[alert]

    assert _found(alert, **at) == []
    [finding] = _found(alert, **beyond)
    assert finding.value == pytest.approx(measured)
    assert finding == Finding(alert, SUBJECTS.get(alert, ""), finding.value, threshold)


def test_every_alert_is_tried() -> None:
    """And nothing is found where nothing happens."""
    assert [each.name for each in definitions(THRESHOLDS)] == list(CASES)
    assert holding(QUIET, THRESHOLDS) == []


def test_every_threshold_is_a_setting() -> None:
    """Two more are the least numbers of messages and of failures that shares are made of."""
    keys = {each.setting.removesuffix("_ms") for each in definitions(THRESHOLDS)} - {""}

    assert keys | {"min_messages", "error_mix_failures"} == {
        each.name for each in fields(Thresholds)
    }


@pytest.mark.parametrize(
    ("alert", "few", "enough"),
    [
        ("DeadLetterShareHigh", _minute(failed=19), _minute(failed=20)),
        (
            "FailureRateHigh",
            _minute(ended_of_1=19, error_of_A=19),
            _minute(ended_of_1=20, error_of_A=20),
        ),
    ],
)
def test_share_of_few_messages_says_nothing(
    alert: str, few: dict[datetime, Figures], enough: dict[datetime, Figures]
) -> None:
    """One dead letter in a quiet night must not wake anybody."""
    assert _found(alert, minutes=few) == []
    assert len(_found(alert, minutes=enough)) == 1


def test_few_failures_have_no_mix() -> None:
    """In either hour."""
    many, few = _errors(A=100), _errors(B=99)

    assert _found("ErrorMixChanged", minutes={NOW: many}, yesterday=few) == []
    assert _found("ErrorMixChanged", minutes={NOW: few}, yesterday=many) == []
    assert len(_found("ErrorMixChanged", minutes={NOW: many}, yesterday=_errors(B=100))) == 1


def test_longest_open_circuit_counts() -> None:
    """Processes open it at different times; it is one finding for each provider."""
    seen = [
        Report(str(minutes), {"smtp": NOW - minutes * MINUTE, "ses": NOW - 6 * MINUTE})
        for minutes in (1, 7, 3)
    ]

    found = _found("CircuitOpen", reports=seen)
    assert [(each.subject, each.value) for each in found] == [("smtp", 420), ("ses", 360)]


def test_queue_without_a_limit_has_no_share() -> None:
    """And a process that does not reach it knows nothing of its memory."""
    assert _found("QueueMemoryHigh", reports=_queue(used_bytes=100)) == []
    away = _queue(used_bytes=100, max_bytes=100, away_since=NOW)
    assert _found("QueueMemoryHigh", reports=away) == []  # another one reaches it


@pytest.mark.parametrize(
    "reports", [[], [Report("a", {}, QueueReport(99, 100, 5, 5, away_since=NOW))]]
)
def test_queue_that_nobody_reaches_is_unknown(reports: list[Report]) -> None:
    """Neither the last known values hold nor their opposite; whether it is unreachable is known by a report."""
    found = holding(replace(QUIET, reports=reports, has_queue=True), THRESHOLDS)

    assert {each.alert for each in found if not each.is_known} == {
        *(each for each in CASES if each.startswith("Queue") and each != "QueueAgeHigh"),
        *([] if reports else ["StoreUnreachable"]),
    }
    assert [each.alert for each in found if each.is_known] == (
        ["StoreUnreachable"] if reports else []
    )


def test_only_recent_minutes_count_for_percentiles() -> None:
    """Those of the last quarter of an hour."""
    old = {NOW - 17 * MINUTE: Counter({"max_queue_age_ms": 10**9, f"delay.{len(DELAYS)}": 10**6})}

    assert holding(replace(QUIET, minutes=old), THRESHOLDS) == []


def test_one_old_minute_in_a_quarter_of_an_hour_is_no_p95() -> None:
    """The interpolation gives it a small part."""
    assert _found("QueueAgeHigh", minutes=_ages(300)) == []


def test_findings_of_one_alert_are_bounded() -> None:
    """Those with the highest values are kept: enough for all, as one that is left out seems to be over."""
    most = MOST_SUBJECTS + 100
    many = [(f"tenant-{number}", 100 + number) for number in range(most)]

    found = _found("TenantManyDeadLetters", dead_by_tenant=many)
    assert [each.value for each in found] == list(range(99 + most, 199, -1))
