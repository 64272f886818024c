"""Suppressed addresses, from the command line."""

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine


def test_suppressed_address_is_listed_and_not_sent_to(line: CommandLine) -> None:
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


def test_address_is_found_in_any_spelling(line: CommandLine) -> None:
    """With the end of its suppression."""
    line.tenant("acme")
    line.done("suppression", "add", "ana@example.com", "--tenant", "acme", "--expires-in", "7d")
    line.done("suppression", "add", "bia@example.com", "--tenant", "acme")

    [row] = line.listed("suppression", "ls", "--tenant", "acme", "--email", "ANA@Example.com")

    assert row["expiresAt"] is not None


def test_suppression_that_would_end_at_once_is_refused(line: CommandLine) -> None:
    """It would suppress nobody, and report success."""
    line.tenant("acme")

    ran = line("suppression", "add", "ana@example.com", "--tenant", "acme", "--expires-in", "0s")

    assert ran.code == ExitCode.WRONG_USE
    assert "has no effect" in ran.err
    assert line.listed("suppression", "ls", "--tenant", "acme") == []


def test_removed_suppression_allows_mail_again(line: CommandLine) -> None:
    """A second removal finds nothing."""
    line.tenant("acme")
    line.done("suppression", "add", "ana@example.com", "--tenant", "acme")

    line.done("suppression", "rm", "Ana@example.com", "--tenant", "acme")
    again = line("suppression", "rm", "ana@example.com", "--tenant", "acme")

    assert again.code == ExitCode.NOT_FOUND
    assert line.listed("suppression", "ls", "--tenant", "acme") == []


def test_invalid_address_refuses_the_whole_list(line: CommandLine) -> None:
    line.tenant("acme")

    ran = line("suppression", "add", "ana@example.com", "nobody", "--tenant", "acme")

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert line.listed("suppression", "ls", "--tenant", "acme") == []
