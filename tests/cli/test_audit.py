"""``carteiro admin-token`` and ``carteiro audit``: tokens of people, and the record of their changes."""

import json
import re
import socket
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from carteiro.cli.exit_codes import ExitCode
from carteiro.runtime.acting import user
from support.command_line import CommandLine


def _rows(line: CommandLine, *flags: str) -> list[dict[str, Any]]:
    ran = line("audit", "ls", "--json", *flags)
    assert ran.code == ExitCode.OK, ran.err
    return [json.loads(each) for each in ran.out.splitlines()]


def test_token_is_added_listed_and_revoked(line: CommandLine) -> None:
    """With its name, role and tenant; the token itself is shown once."""
    line.tenant("acme")
    made = line.asked("admin-token", "add", "ana", "--role", "operator", "--tenant", "acme")
    listed = line("admin-token", "ls", "--json")
    line.done("admin-token", "revoke", made["id"], "--yes")
    again = line("admin-token", "revoke", made["id"], "--yes")

    [shown] = [json.loads(each) for each in listed.out.splitlines()]
    assert (shown["name"], shown["role"], shown["companyId"]) == ("ana", "operator", "acme")
    assert shown["state"] == "live"
    assert made["token"] not in listed.out
    assert again.code == ExitCode.NOT_FOUND


@pytest.mark.parametrize("name", ["ana@example.com", "", "a\nb", "x" * 65])
def test_name_of_a_token_is_checked(line: CommandLine, name: str) -> None:
    """It stands in every audit row."""
    line.tenant("acme")

    assert line("admin-token", "add", name, "--role", "viewer").code == ExitCode.WRONG_USE


@pytest.mark.parametrize(
    "command", ["admin-token add ana --role viewer", "key create --tenant acme"]
)
def test_token_that_expires_at_once_is_refused(line: CommandLine, command: str) -> None:
    """It could never be used."""
    line.tenant("acme")

    assert line(*command.split(), "--expires-in", "0s").code == ExitCode.WRONG_USE


def test_times_in_rows_have_one_form(line: CommandLine) -> None:
    """ISO 8601 with milliseconds and Z."""
    line.tenant("acme")
    line.dead("--tenant", "acme")
    line.done("admin-token", "add", "ana", "--role", "viewer", "--expires-in", "90d")
    line.done("alerts", "silence", "*", "--lasts", "2h", "--reason", "upgrade")
    line.done("dead", "redrive", "--all", "--since", "2h", "--yes")
    [token], [silence], [redrive] = [
        _rows(line, "--action", action, "--kind", kind)
        for action, kind in (("add", "token"), ("silence", "alert"), ("start", "redrive"))
    ]

    wanted = redrive["after"]["wanted"]
    times = token["after"]["expiresAt"], silence["after"]["until"], wanted["movedAfter"]
    assert all(re.fullmatch(r"[-0-9]{10}T[:0-9]{8}\.[0-9]{3}Z", each) for each in times), times


def test_list_in_a_pipe_has_no_spaces_at_the_ends_of_lines(line: CommandLine) -> None:
    """One long row would make all lines as long."""
    line.tenant("acme")
    line.done("tenant", "set", "acme", "--cap", "3")
    shown = line("audit", "ls").out.splitlines()

    assert len(shown) == 3
    assert [each for each in shown if each != each.rstrip()] == []


def test_change_names_the_user_and_the_host(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of the process: variables, which anyone can set, do not count."""
    line.tenant("acme")
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("LOGNAME", "mallory")
    line.done("tenant", "pause", "acme")

    [row] = _rows(line, "--action", "pause", "--tenant", "acme")
    assert (row["who"], row["via"], row["origin"]) == (user(), "cli", socket.gethostname())
    assert (row["before"], row["after"]) == ({"paused": False}, {"paused": True})


def test_pruned_rows_are_counted_and_leave_a_row(line: CommandLine) -> None:
    """Nobody can clear the record without a trace."""
    line.tenant("acme")
    line.done("tenant", "pause", "acme")
    before = len(_rows(line))
    with closing(sqlite3.connect(line.file)) as db, db:
        db.execute("UPDATE audit SET at = at - 86400000")

    said = line.done("prune", CARTEIRO_RETENTION_AUDIT_MS="86400000")

    [row] = _rows(line)
    assert f"{before} audit rows" in said
    assert (row["action"], row["kind"], row["who"], row["via"]) == ("prune", "audit", user(), "cli")
    assert row["after"] == {"auditMs": 86_400_000, "count": before}


def test_first_tenant_of_a_store_is_by_the_command(line: CommandLine) -> None:
    """Whichever makes the store."""
    line.done("migrate")

    found = _rows(line, "--tenant", "default")
    assert {each["via"] for each in found} == {"cli"}


def test_changes_are_filtered_and_shown_as_a_table(line: CommandLine) -> None:
    """By each of its columns; an empty list says so."""
    line.tenant("acme")
    line.done("tenant", "set", "acme", "--cap", "3")
    line.done("key", "add", "--tenant", "acme", "--name", "shop")

    assert [row["kind"] for row in _rows(line, "--kind", "key")] == ["key"]
    assert len(_rows(line, "--object", "acme", "--action", "set", "--who", user())) == 1
    assert _rows(line, "--since", "2199-01-01T00:00:00Z") == []
    table = line("audit", "ls")
    assert "set tenant" in table.out
    assert "cap=3" in table.out
    assert "No changes found." in line("audit", "ls", "--who", "nobody").err
