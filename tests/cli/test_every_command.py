"""Rules that hold for every command."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from carteiro.cli import app
from carteiro.cli.exit_codes import MEANINGS, ExitCode
from support.command_line import CommandLine

NAMED = {
    *("up", "api", "worker", "process", "send", "show", "explain", "ls", "cancel", "stats", "kpis"),
    *("doctor", "migrate", "move", "prune", "backup", "version", "erase", "config show"),
    *("fairness show", "fairness set"),
    *(f"alerts {each}" for each in ("ls", "show", "definitions", "ack", "silence", "silences")),
    *(f"alerts {each}" for each in ("unsilence", "test", "notices")),
    "classify",
    *(f"dead {each}" for each in ("ls", "show", "group", "edit", "redrive")),
    *(f"dead {each}" for each in ("export", "import", "purge")),
    *(f"redrives {each}" for each in ("ls", "show", "pause", "resume", "cancel")),
    *(f"tenant {each}" for each in ("ls", "show", "add", "set", "disable", "enable", "pause")),
    *(f"tenant {each}" for each in ("resume", "erase", "standing")),
    *(f"key {each}" for each in ("ls", "add", "revoke")),
    *(f"admin-token {each}" for each in ("ls", "add", "revoke", "rotate")),
    "audit ls",
    "verdicts suggest",
    *(f"failures {each}" for each in ("ls", "show", "ack", "resolve", "ignore")),
    *(f"template {each}" for each in ("ls", "show", "put", "delete", "preview", "samples")),
    *(f"recipient {each}" for each in ("ls", "show", "delete", "erase")),
    *(f"suppression {each}" for each in ("ls", "add", "rm")),
    *(f"inbox {each}" for each in ("ls", "show", "open")),
    *(f"tickets {each}" for each in ("run", "archive", "audit")),
    *(f"tickets dlq {each}" for each in ("ls", "group", "show", "republish", "purge")),
    *("tickets dlq acknowledge", "tickets dlq quarantine"),
}
SERVERS = {"up", "api", "worker", "tickets run", "tickets archive"}  # they print a log, not data
DESTRUCTIVE = {
    *("tenant erase", "recipient delete", "recipient erase", "erase", "key revoke"),
    *("template delete", "dead purge", "prune", "dead redrive", "admin-token rotate"),
    "admin-token revoke",
    *("tickets dlq republish", "tickets dlq purge", "tickets dlq quarantine"),
    "tickets dlq acknowledge",
}
SOME_ID = "0190a0a0-0000-7000-8000-000000000000"


def _leaves(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            assert command.help, name
            yield from _leaves(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


LEAVES = dict(_leaves(typer.main.get_command(app)))


def _flags(name: str) -> set[str]:
    return {flag for parameter in LEAVES[name].params for flag in parameter.opts}


def test_command_list_is_complete() -> None:
    """The tests below cover only the listed commands."""
    assert set(LEAVES) == NAMED


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_command_is_described(name: str, line: CommandLine) -> None:
    """So is each of its options and arguments, by its whole name on a narrow terminal."""
    ran = line(*name.split(), "--help")

    assert ran.code == ExitCode.OK
    assert "[[" not in ran.out
    assert {flag for flag in _flags(name) if flag.startswith("--") and flag not in ran.out} == set()
    assert LEAVES[name].help
    untold = [each.name for each in LEAVES[name].params if not each.help]
    assert untold == []


@pytest.mark.parametrize("name", sorted(NAMED - SERVERS))
def test_data_commands_print_json_too(name: str) -> None:
    """Scripts need not read tables."""
    assert "--json" in _flags(name)


@pytest.mark.parametrize("name", sorted(NAMED - {"version"}))
def test_settings_file_can_be_named(name: str) -> None:
    """For several installations on one machine."""
    assert "--config" in _flags(name)


def test_command_with_a_store_option_has_a_queue_option() -> None:
    """A store with a separate queue must not be opened without it."""
    assert {name for name in NAMED if "--queue" in _flags(name)} == {
        name for name in NAMED if "--store" in _flags(name)
    }


def test_only_destructive_commands_ask() -> None:
    """All of them do."""
    assert {name for name in NAMED if "--yes" in _flags(name)} == DESTRUCTIVE


@pytest.mark.parametrize(
    "command",
    [
        ("tenant", "erase", "acme"),
        ("key", "revoke", "k", "--tenant", "acme"),
        ("template", "delete", "welcome_user", "--tenant", "acme"),
        ("dead", "purge"),
        ("dead", "redrive", "--all"),
        ("prune", "--history", "1d"),
    ],
)
def test_destructive_command_without_a_terminal_is_refused(
    line: CommandLine, command: tuple[str, ...]
) -> None:
    """A script says --yes."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    line.sent("bounce-550@sandbox.test")
    line.worked_off()

    ran = line(*command)

    assert (ran.code, ran.out) == (ExitCode.REFUSED, "")
    assert "--yes" in ran.err
    assert len(line.listed("template", "ls", "--tenant", "acme")) > 0


ON_NOTHING = {
    "ls": ("ls",),
    "show": ("show", SOME_ID),
    "explain": ("explain", SOME_ID),
    "cancel": ("cancel", SOME_ID),
    "stats": ("stats",),
    "kpis": ("kpis",),
    "backup": ("backup", "copy.db"),
    "prune": ("prune",),
    "erase": ("erase", "--recipient", SOME_ID, "--tenant", "acme"),
    "dead": ("dead", "ls"),
    "tenant": ("tenant", "ls"),
    "key": ("key", "ls", "--tenant", "acme"),
    "admin-token": ("admin-token", "rotate"),
    "template": ("template", "ls", "--tenant", "acme"),
    "recipient": ("recipient", "ls", "--tenant", "acme"),
    "suppression": ("suppression", "ls", "--tenant", "acme"),
    "inbox": ("inbox", "ls"),
    "alerts": ("alerts", "ls"),
}


@pytest.mark.parametrize("name", ON_NOTHING)
def test_mistyped_store_is_not_created(name: str, line: CommandLine) -> None:
    """The error has the origin of the name; an empty store would look like a loss."""
    ran = line(*ON_NOTHING[name])

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert "from environment variable CARTEIRO_STORE" in ran.err
    assert list(line.folder.iterdir()) == []


@pytest.mark.parametrize("name", ON_NOTHING)
def test_memory_store_of_another_process_is_refused(name: str, line: CommandLine) -> None:
    """Wrong settings are exit code 2."""
    ran = line(*ON_NOTHING[name], CARTEIRO_STORE="memory://")

    assert (ran.code, "for one process" in ran.err) == (ExitCode.WRONG_USE, True)


OF_A_TENANT = [
    ("ls",),
    ("stats",),
    ("kpis",),
    ("send", "--to", "ok@sandbox.test", "--subject", "S", "--text", "T"),
    ("dead", "ls"),
    ("dead", "group"),
    ("dead", "purge", "--yes"),
    ("dead", "redrive", "--all", "--yes"),
    ("dead", "export", "-"),
    ("inbox", "ls"),
    ("alerts", "ls"),
    ("tenant", "standing"),
    ("key", "ls"),
    ("key", "add"),
    ("key", "revoke", "k", "--yes"),
    ("template", "ls"),
    ("template", "show", "welcome_user"),
    ("template", "preview", "welcome_user"),
    ("template", "delete", "welcome_user", "--yes"),
    ("template", "samples"),
    ("template", "put", "t", "--subject", "S"),
    ("recipient", "ls"),
    ("recipient", "show", SOME_ID),
    ("recipient", "delete", SOME_ID, "--yes"),
    ("recipient", "erase", SOME_ID, "--yes"),
    ("erase", "--recipient", SOME_ID, "--yes"),
    ("suppression", "ls"),
    ("suppression", "add", "ana@example.com"),
    ("suppression", "rm", "ana@example.com"),
]
EMPTY_LISTS = {
    "messages": ("ls",),
    "keys": ("key", "ls"),
    "templates": ("template", "ls"),
    "recipients": ("recipient", "ls"),
    "suppressions": ("suppression", "ls"),
}
ABOUT_A_TENANT = ["show", "set", "disable", "enable", "pause", "resume", "erase"]


@pytest.mark.parametrize("command", OF_A_TENANT, ids=" ".join)
def test_unknown_tenant_is_not_found(line: CommandLine, command: tuple[str, ...]) -> None:
    """A mistyped name must not look like a tenant without data, and is not created."""
    line.tenant("acme")

    ran = line(*command, "--tenant", "acne")

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert "carteiro tenant ls" in ran.err
    assert [row["companyId"] for row in line.listed("tenant", "ls")] == ["acme"]


@pytest.mark.parametrize("what", EMPTY_LISTS)
def test_empty_list_names_what_was_not_found(line: CommandLine, what: str) -> None:
    """For people; programs get no output."""
    line.tenant("acme")

    people = line(*EMPTY_LISTS[what], "--tenant", "acme")
    programs = line(*EMPTY_LISTS[what], "--tenant", "acme", "--json")

    assert (people.out, people.err) == ("", f"No {what} found.\n")
    assert (programs.out, programs.err) == ("", "")


@pytest.mark.parametrize("command", ABOUT_A_TENANT)
def test_missing_tenant_cannot_be_changed(line: CommandLine, command: str) -> None:
    """Only add creates one."""
    line.tenant("acme")

    assert line("tenant", command, "acne", *(("--yes",) if command == "erase" else ())).code == (
        ExitCode.NOT_FOUND
    )
    assert [row["companyId"] for row in line.listed("tenant", "ls")] == ["acme"]


def test_read_commands_do_not_apply_settings(line: CommandLine) -> None:
    """A list from a folder without the server's settings must not lift its send limit."""
    line.sent("ok@sandbox.test")
    governed = {"CARTEIRO_SEND_LIMIT_COUNT": "1", "CARTEIRO_SEND_LIMIT_PER_MS": "86400000"}
    line.worked_off(**governed)
    line.sent("ok@sandbox.test")

    line.done("ls")
    line.done("tenant", "ls")
    [waiting] = line.listed("ls", "--status", "enqueued")

    assert line.asked("explain", waiting["outboxId"])["why"] == "send_limit"


def test_every_exit_code_has_a_meaning() -> None:
    """Scripts depend on the table."""
    assert list(MEANINGS) == list(ExitCode)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls", "--to", "\udcff"),
        ("ls", "--tenant", "\udcff"),
        ("ls", "--store", "sqlite:///\udcff.db"),
        ("worker", "--store", "sqlite:///\udcff.db"),
        ("send", "--tenant", "a\udcff", "--to", "ok@sandbox.test", "--subject", "Oi"),
        ("send", "--to", "ok@sandbox.test", "--subject", "Oi", "--tag", "a", "--tag", "\udcff"),
        ("tenant", "add", "\udcff"),
        ("tenant", "set", "acme", "--name", "\udcff"),
        ("recipient", "ls", "--tenant", "acme", "--email", "\udcff"),
        ("suppression", "add", "--tenant", "acme", "\udcff@example.com"),
    ],
)
def test_text_that_is_not_utf_8_is_refused(line: CommandLine, arguments: tuple[str, ...]) -> None:
    """Broken bytes come as surrogates; the error says where, and nothing is changed."""
    line.tenant("acme")

    ran = line(*arguments)

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert "is not valid UTF-8" in ran.err
    assert [each["companyId"] for each in line.listed("tenant", "ls")] == ["acme"]
