"""An existing key of clients can be imported into the API, without being printed."""

from pathlib import Path

import pytest

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine

OWN = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2lnbmF0dXJl"


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A store that knows ACME."""
    monkeypatch.chdir(tmp_path)
    made = CommandLine(tmp_path)
    made.tenant("acme")
    return made


def test_existing_key_is_imported(line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its hash is stored, as of every key."""
    monkeypatch.setenv("SUPABASE_SERVICE_ROLE_KEY", OWN)

    said = line.asked("key", "add", "--tenant", "acme", "--secret", "env:SUPABASE_SERVICE_ROLE_KEY")

    [key] = line.listed("key", "ls", "--tenant", "acme")
    assert key["id"] == said["id"]
    assert OWN not in str(said)


@pytest.mark.parametrize("kept", ["too-short", "x" * 300, "with a space in it, and long enough"])
def test_invalid_key_is_refused(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """It could be guessed, or no header could carry it."""
    monkeypatch.setenv("MY_KEY", kept)

    ran = line("key", "add", "--tenant", "acme", "--secret", "env:MY_KEY")

    assert ran.code == ExitCode.WRONG_USE
    assert kept not in ran.out + ran.err
    assert line.listed("key", "ls", "--tenant", "acme") == []


def test_key_is_not_a_command_line_argument(line: CommandLine) -> None:
    """Every user of the machine could read it there."""
    ran = line("key", "add", "--tenant", "acme", "--secret", OWN)

    assert ran.code == ExitCode.WRONG_USE
    assert OWN not in ran.out + ran.err
