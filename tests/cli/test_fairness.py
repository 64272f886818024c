"""Fairness from the command line: shown, and changed at run time."""

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine

BATCH = "fairness.max_jobs_per_tenant_batch"


def _shown(line: CommandLine, key: str) -> tuple[object, str]:
    """A setting in config show, and its origin."""
    [row] = [each for each in line.listed("config", "show") if each["key"] == key]
    return row["value"], row["origin"]


def test_change_at_run_time_is_shown_everywhere(line: CommandLine) -> None:
    """By fairness show, config show, stats and doctor; other values stay."""
    line.tenant("acme")

    line.done("fairness", "set", "--max-jobs-per-tenant-batch", "7")
    line.done("fairness", "set", "--no-enable-round-robin")

    shown = line.asked("fairness", "show")
    assert (shown["maxJobsPerTenantBatch"], shown["enableRoundRobin"]) == (7, False)
    assert (shown["roundRobinBasePriority"], shown["isOverride"]) == (5, True)
    assert _shown(line, BATCH) == (7, "run time, overrides 3 (default)")
    assert line.asked("stats")["overrides"]["fairness"]["maxJobsPerTenantBatch"] == 7
    told = {each["check"]: each["told"] for each in line("doctor", "--json").documents}
    assert "max_jobs_per_tenant_batch = 7" in told["overrides"]
    assert "changed at run time" in line("stats").err


def test_reset_goes_back_to_the_settings(line: CommandLine) -> None:
    """No command shows the change any more."""
    line.tenant("acme")
    line.done("fairness", "set", "--max-jobs-per-tenant-batch", "7")

    line.done("fairness", "set", "--reset")

    assert line.asked("fairness", "show")["isOverride"] is False
    assert _shown(line, BATCH) == (3, "default")
    assert line.asked("stats")["overrides"] == {}
    assert line("stats").err == ""


def test_empty_or_contradicting_change_is_refused(line: CommandLine) -> None:
    """So is an invalid one."""
    line.tenant("acme")

    for wrong in (
        (),
        ("--reset", "--max-jobs-per-tenant-batch", "1"),
        ("--max-jobs-per-tenant-batch", "0"),
        ("--max-jobs-per-tenant-batch", "1000001"),
    ):
        assert line("fairness", "set", *wrong).code == ExitCode.WRONG_USE

    assert line.asked("fairness", "show")["isOverride"] is False


def test_settings_are_shown_without_a_store(line: CommandLine) -> None:
    """A missing one is not created; an unreachable one is mentioned."""
    missing = line("config", "show")
    away = line("config", "show", CARTEIRO_STORE="postgresql://127.0.0.1:1/mail")

    assert (missing.code, missing.err, line.file.exists()) == (ExitCode.OK, "", False)
    assert away.code == ExitCode.OK
    assert "cannot be read: postgresql://127.0.0.1:1/mail" in away.err
