"""What is printed for people: tables, and how far something long has come."""

import io
from datetime import UTC, datetime, timedelta

import pytest

from carteiro.cli import progress
from carteiro.cli.documents import document_of
from carteiro.cli.printing import cell, printable
from carteiro.cli.progress import count_done, share_done
from carteiro.model import Category, DeadGroup, SendLimit
from support.builders import a_failure, a_tenant


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, ""),
        (True, "yes"),
        (datetime(2026, 10, 1, 12, tzinfo=UTC), "2026-10-01T12:00:00.000Z"),
        (timedelta(minutes=5), "5m"),
        (("a", "b"), "a, b"),
        (Category.QUOTA_ERROR, "QUOTA_ERROR"),
        ("a\nb\x1b[31m\u202e", r"a\nb\x1b[31m\u202e"),
        ("Olá, 世界 🙂", "Olá, 世界 🙂"),
    ],
)
def test_a_cell_says_a_value_in_plain_words(value: object, told: str) -> None:
    """Nothing in it moves the cursor, changes a colour or turns the line round."""
    assert cell(value).plain == told


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\x9b31m", "\r"])
def test_what_a_terminal_would_obey_is_escaped(text: str) -> None:
    """Whatever a mail server answers."""
    assert printable(text).isascii()
    assert printable(text).isprintable()


def test_a_document_has_the_names_of_the_api() -> None:
    """camelCase, durations in milliseconds, times in ISO 8601, tenants as companyId."""
    noon = datetime(2026, 10, 1, 12, tzinfo=UTC)

    assert document_of(SendLimit(3, timedelta(seconds=2))) == {"count": 3, "perMs": 2000}
    assert document_of(a_tenant("acme"))["companyId"] == "acme"
    assert document_of(a_failure())["originalCode"] == "421 4.3.2"
    assert document_of(DeadGroup("550", 1, noon, noon), by="code") == {
        "key": "550",
        "count": 1,
        "oldest": "2026-10-01T12:00:00.000Z",
        "newest": "2026-10-01T12:00:00.000Z",
        "by": "code",
    }


def test_what_is_no_value_has_no_document() -> None:
    """A slip is told, not printed."""
    with pytest.raises(TypeError):
        document_of("text")


def test_progress_is_quiet_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """What is done within seconds writes nothing into a log."""
    with count_done("erased") as tell, share_done("backup") as share:
        tell(500)
        share(0.5)

    assert capsys.readouterr() == ("", "")


def test_progress_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the log sees that it goes on; stdout is for data."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    with count_done("erased") as tell, share_done("backup") as share:
        tell(1500)
        share(0.5)

    assert capsys.readouterr() == ("", "erased: 1,500\nbackup: 50%\n")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It moves, and is gone at the end."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    with count_done("erased") as tell:
        tell(1500)
    with share_done("backup [x]") as share:
        share(0.5)

    assert "1,500" in terminal.getvalue()
    assert "backup [x]" in terminal.getvalue()
    assert "50 %" in terminal.getvalue()
