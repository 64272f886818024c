"""Output for people: tables, and progress."""

import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from carteiro.cli import progress
from carteiro.cli.documents import document_of
from carteiro.cli.printing import Column, Printer, cell, printable
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
def test_cell_shows_a_value_as_text(value: object, told: str) -> None:
    """Nothing in it moves the cursor, changes a colour or reverses the line."""
    assert cell(value).plain == told


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\x9b31m", "\r"])
def test_terminal_control_characters_are_escaped(text: str) -> None:
    """In any answer of a mail server."""
    assert printable(text).isascii()
    assert printable(text).isprintable()


def test_document_has_the_names_of_the_api() -> None:
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


def test_unsupported_value_has_no_document() -> None:
    """A bug raises an error instead of printing."""
    with pytest.raises(TypeError):
        document_of("text")


def test_progress_is_quiet_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Work of a few seconds writes nothing into a log."""
    with count_done("erased") as tell, share_done("backup") as share:
        tell(500)
        share(0.5)

    assert capsys.readouterr() == ("", "")


def test_progress_prints_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log shows that work goes on; stdout is for data."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    with count_done("erased") as tell, share_done("backup") as share:
        tell(1500)
        share(0.5)

    assert capsys.readouterr() == ("", "erased: 1,500\nbackup: 50%\n")


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (200, 2),  # one for the heading
        (75, 3),  # the address is folded
        (60, 4),
        (57, 2),  # too narrow: the terminal folds the line
    ],
)
def test_no_column_vanishes_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, lines: int
) -> None:
    """Each cell can be read, folded or not."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout", terminal := _Terminal())
    id_, to = "01a1eb29-7886-7054-b1b6-2d650c6c863c", "somebody.with.a.long.name@example.com"
    wanted = [Column[str]("id", lambda _: id_, is_whole=True), Column[str]("to", str)]
    wanted.append(Column("tenant", lambda _: "acme"))

    Printer(as_json=False).rows([to], wanted, lambda _: {})

    printed = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
    assert len(printed.splitlines()) == lines
    assert {id_, "acme"} <= set(printed.split())
    assert to in "".join(printed.replace(id_, "").replace("acme", "").split())


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
