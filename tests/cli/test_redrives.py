"""``carteiro redrives``: follow, pause, resume and cancel jobs that redrive dead letters."""

import pytest

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine


def a_redrive(line: CommandLine, *flags: str) -> str:
    """The id of a redrive that was just started."""
    identity: str = line.asked("dead", "redrive", "--all", "--yes", *flags)["id"]
    return identity


def test_redrives_are_listed_newest_first(line: CommandLine) -> None:
    """Of all tenants, or of one."""
    line.tenant("acme")
    line.dead("--tenant", "acme")
    first, second = a_redrive(line), a_redrive(line, "--tenant", "acme")

    assert [row["id"] for row in line.listed("redrives", "ls")] == [second, first]
    assert [row["id"] for row in line.listed("redrives", "ls", "--tenant", "acme")] == [second]
    assert "0 of 1" in line.done("redrives", "ls")


def test_redrive_is_paused_resumed_and_cancelled(line: CommandLine) -> None:
    """An ended one is refused, by its state."""
    line.dead()
    redrive = a_redrive(line)

    paused = line.asked("redrives", "pause", redrive)
    line.worked_off()
    resumed = line.asked("redrives", "resume", redrive)
    said = line.done("redrives", "cancel", redrive)
    again = line("redrives", "resume", redrive)

    assert [each["state"] for each in (paused, resumed)] == ["paused", "running"]
    assert resumed["redriven"] == 0
    assert said.strip() == f"Redrive {redrive} is cancelled."
    assert (again.code, "is cancelled" in again.err) == (ExitCode.REFUSED, True)


def test_stopped_redrive_says_why(line: CommandLine) -> None:
    """With its numbers. It cannot be paused: the message says how it goes on."""
    for _ in range(2):
        line.dead()
    redrive = a_redrive(line, "--canary", "1", "--max-failed", "0.5", "--code", "550")
    line.worked_off()

    shown = line.done("redrives", "show", redrive)
    refused = line("redrives", "pause", redrive)

    assert f"is stopped: carteiro redrives resume {redrive} continues it" in refused.err
    assert "1 of 1 failed again, more than 50%." in shown
    assert "code 550" in shown


def test_nothing_is_started_for_nothing(line: CommandLine) -> None:
    """It says that none match."""
    line.dead()

    ran = line("dead", "redrive", "--all", "--yes", "--code", "421")

    assert (ran.code, "No matching dead letters" in ran.err) == (ExitCode.OK, True)
    assert not line.listed("redrives", "ls")


@pytest.mark.parametrize("unknown", ["x", "0190a0a0-0000-7000-8000-000000000000"])
def test_unknown_redrive_is_not_found(line: CommandLine, unknown: str) -> None:
    """The message says where to look."""
    line.tenant("acme")
    for command in ("show", "pause", "resume", "cancel"):
        ran = line("redrives", command, unknown)
        assert (ran.code, "carteiro redrives ls" in ran.err) == (ExitCode.NOT_FOUND, True)


def test_open_redrives_are_limited(line: CommandLine) -> None:
    """The message says what to do."""
    line.dead()
    for _ in range(5):
        a_redrive(line)

    ran = line("dead", "redrive", "--all", "--yes")

    assert (ran.code, "carteiro redrives cancel" in ran.err) == (ExitCode.REFUSED, True)
