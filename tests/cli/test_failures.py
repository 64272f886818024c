"""``carteiro failures``: messages that fail alike."""

import json
from typing import Any

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine


def _groups(line: CommandLine, *flags: str) -> list[dict[str, Any]]:
    ran = line("failures", "ls", "--json", *flags)
    assert ran.code == ExitCode.OK, ran.err
    return [json.loads(each) for each in ran.out.splitlines()]


def _lived(line: CommandLine) -> dict[str, Any]:
    """Two e-mails bounced; their group."""
    for tenant in ("acme", "brasa"):
        line.tenant(tenant)
        line.done(
            *("send", "--tenant", tenant, "--to", "bounce-550@sandbox.test"),
            *("--subject", "a", "--text", "b"),
        )
    line.processed()
    [group] = _groups(line)
    return group


def test_groups_are_listed_and_shown(line: CommandLine) -> None:
    """With counts, samples and what to do; of one tenant its own part."""
    group = _lived(line)
    shown = line.asked("failures", "show", group["id"])
    told = line("failures", "show", group["id"]).out

    assert (group["attempts"], group["deaths"], group["state"]) == (2, 2, "open")
    assert _groups(line, "--tenant", "acme")[0]["deaths"] == 1
    assert _groups(line, "--state", "resolved") == []
    assert len(shown["samples"]) == 2
    assert {"attempts", "deaths"} <= {*told.split()}  # the same words as in the document
    assert {each["companyId"] for each in shown["tenants"]} == {"acme", "brasa"}
    assert group["action"] in " ".join(told.split())
    assert group["runbook"] in told
    assert line("failures", "ls").out.count(group["id"]) == 1


def test_states_are_changed(line: CommandLine) -> None:
    """Each says the new state; a resolved group is not acknowledged."""
    group = _lived(line)["id"]

    assert "is acknowledged" in line("failures", "ack", group).out
    assert "is resolved" in line("failures", "resolve", group).out
    assert line("failures", "ack", group).code == ExitCode.REFUSED
    assert "is ignored" in line("failures", "ignore", group).out
    assert line("failures", "ack", "0123456789ab").code == ExitCode.NOT_FOUND
    assert line("failures", "show", "0123456789ab").code == ExitCode.NOT_FOUND
