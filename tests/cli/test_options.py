"""Durations and times on the command line."""

from datetime import UTC, datetime, timedelta

import pytest
import typer

from carteiro.cli.options import a_duration, a_moment, a_time, in_words


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("0s", timedelta(0)),
    ],
)
def test_duration_has_a_unit(text: str, meant: timedelta) -> None:
    """A bare number could be seconds or milliseconds."""
    assert a_duration(text) == meant


@pytest.mark.parametrize("text", ["", "7", "-1d", "1.5h", "7 d", "7w", "999999999999d", "\u0661d"])
def test_invalid_duration_is_refused(text: str) -> None:
    """The error shows the format."""
    with pytest.raises(typer.BadParameter, match="30s, 5m, 2h or 7d"):
        a_duration(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-10-01T12:00:00Z", datetime(2026, 10, 1, 12, tzinfo=UTC)),
        ("2026-10-01T12:00:00-03:00", datetime(2026, 10, 1, 15, tzinfo=UTC)),
        ("2026-10-01T12:00", datetime(2026, 10, 1, 12, tzinfo=UTC)),
        ("2026-10-01", datetime(2026, 10, 1, tzinfo=UTC)),
    ],
)
def test_time_is_utc_unless_it_has_an_offset(text: str, meant: datetime) -> None:
    """The local clock must not matter."""
    assert a_time(text) == meant


@pytest.mark.parametrize("text", ["", "yesterday", "12:00", "2026-13-01", "0001-01-01T00:00+23:00"])
def test_invalid_time_is_refused(text: str) -> None:
    """The error shows the format."""
    with pytest.raises(typer.BadParameter, match="2026-10-01T12:00:00Z"):
        a_time(text)


def test_duration_means_that_long_ago() -> None:
    """``--since 2h`` needs no clock at hand."""
    before = datetime.now(UTC)

    assert before <= a_moment("2h") + timedelta(hours=2) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("span", "told"),
    [
        (timedelta(days=1, hours=2, minutes=3), "1d 2h"),
        (timedelta(seconds=90), "1m 30s"),
        (timedelta(milliseconds=20), "20ms"),
    ],
)
def test_durations_are_shown_with_their_two_largest_units(span: timedelta, told: str) -> None:
    """More would be noise."""
    assert in_words(span) == told
