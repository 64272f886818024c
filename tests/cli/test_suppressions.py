"""Suppressed addresses, from the command line."""

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine


def test_what_is_added_is_listed_and_not_written_to(line: CommandLine) -> None:
    """The message becomes a dead letter that says why."""
    line.tenant("acme")

    line.done("suppression", "add", "ana@example.com", "bia@example.com", "--tenant", "acme")
    message = line.sent("ANA@example.com", "--tenant", "acme")
    line.worked_off()

    listed = line.listed("suppression", "ls", "--tenant", "acme")
    assert {each["email"] for each in listed} == {"ana@example.com", "bia@example.com"}
    assert {each["reason"] for each in listed} == {"manual"}
    [dead] = line.listed("dead", "ls")
    assert (dead["outboxId"], dead["lastFailureCode"]) == (message, "SUPPRESSED")


def test_one_address_is_found_however_it_is_spelt(line: CommandLine) -> None:
    """With the time at which it ends."""
    line.tenant("acme")
    line.done("suppression", "add", "ana@example.com", "--tenant", "acme", "--expires-in", "7d")
    line.done("suppression", "add", "bia@example.com", "--tenant", "acme")

    [row] = line.listed("suppression", "ls", "--tenant", "acme", "--email", "ANA@Example.com")

    assert row["expiresAt"] is not None


def test_a_suppression_that_would_end_at_once_is_refused(line: CommandLine) -> None:
    """It would suppress nobody, and say that it did."""
    line.tenant("acme")

    ran = line("suppression", "add", "ana@example.com", "--tenant", "acme", "--expires-in", "0s")

    assert ran.code == ExitCode.WRONG_USE
    assert "has no effect" in ran.err
    assert line.listed("suppression", "ls", "--tenant", "acme") == []


def test_what_is_removed_may_be_written_to(line: CommandLine) -> None:
    """Once: then there is nothing to remove."""
    line.tenant("acme")
    line.done("suppression", "add", "ana@example.com", "--tenant", "acme")

    line.done("suppression", "rm", "Ana@example.com", "--tenant", "acme")
    again = line("suppression", "rm", "ana@example.com", "--tenant", "acme")

    assert again.code == ExitCode.NOT_FOUND
    assert line.listed("suppression", "ls", "--tenant", "acme") == []


def test_what_is_no_address_is_refused_with_all_others(line: CommandLine) -> None:
    """Nothing is half done."""
    line.tenant("acme")

    ran = line("suppression", "add", "ana@example.com", "nobody", "--tenant", "acme")

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert line.listed("suppression", "ls", "--tenant", "acme") == []
