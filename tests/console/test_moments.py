"""Times as people read them."""

from datetime import UTC, datetime, timedelta

from carteiro.console.moments import day, exact, lasting, short, zone_of

NOW = datetime(2026, 11, 19, 2, 30, tzinfo=UTC)


def test_time_of_today_is_short_in_the_zone_of_the_viewer() -> None:
    """Today is a day of the viewer's, not of UTC."""
    late, early = datetime(2026, 11, 18, 23, tzinfo=UTC), datetime(2026, 11, 17, 12, tzinfo=UTC)
    zone = zone_of("America/Sao_Paulo")

    assert short(late, zone, "pt", now=NOW) == "20:00:00"
    assert short(late, UTC, "en", now=NOW) == "2026-11-18 23:00"
    assert short(early, zone, "pt", now=NOW) == "17/11/2026 09:00"
    assert (day(early, "en"), day(early, "pt")) == ("11-17", "17/11")
    assert exact(late, zone) == "2026-11-18 20:00:00.000-03:00 (-03)"


def test_zone_that_is_unknown_is_utc() -> None:
    """The name comes from a cookie: it names no file."""
    for name in ("", "Mars/Base", "../../etc/passwd", "/etc/localtime", "a" * 500, "America"):
        assert zone_of(name) is UTC, name


def test_durations_show_their_two_largest_units() -> None:
    cases = {
        timedelta(milliseconds=250): "250 ms",
        timedelta(seconds=61): "1 min 1 s",
        timedelta(days=2, hours=3, minutes=4): "2 d 3 h",
        timedelta(hours=-2): "-2 h",
    }

    assert {span: lasting(span) for span in cases} == cases
