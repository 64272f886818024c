"""Alerts from the command line."""

import asyncio

from carteiro.app import Carteiro
from carteiro.cli.exit_codes import ExitCode
from carteiro.model.alerts import Finding
from support.command_line import CommandLine

DEAD, OF_TENANT = "ManyDeadLetters", "TenantManyDeadLetters"


def fired(line: CommandLine, *, is_new: bool = True) -> None:
    """One alert about a tenant fires, and one about all."""
    if is_new:
        line.tenant("acme")

    async def fire() -> None:
        async with Carteiro.open(f"sqlite:///{line.file}") as post:
            findings = [Finding(DEAD, "", 101, 100), Finding(OF_TENANT, "acme", 51, 50)]
            await post.backend.alerts.move(findings, post.settings.alert_rules())

    asyncio.run(fire())


def test_alerts_are_listed_and_acknowledged(line: CommandLine) -> None:
    """With the name of the user; one that is not open is refused, an unknown one is not found."""
    fired(line)

    assert {(row["name"], row["state"]) for row in line.listed("alerts", "ls")} == {
        (DEAD, "firing"),
        (OF_TENANT, "firing"),
    }
    done = line.asked("alerts", "ack", OF_TENANT, "--subject", "acme")
    assert done["state"] == "acknowledged"
    assert done["acknowledgedBy"]
    [own] = line.listed("alerts", "ls", "--tenant", "acme")
    assert own["state"] == "acknowledged"
    assert line.listed("alerts", "ls", "--resolved") == []
    refused = line("alerts", "ack", OF_TENANT)
    assert (refused.code, "is not firing" in refused.err) == (ExitCode.REFUSED, True)
    assert line("alerts", "ack", "None").code == ExitCode.NOT_FOUND
    [row] = line.listed("audit", "ls", "--kind", "alert")
    assert (row["action"], row["object"]) == ("acknowledge", f"{OF_TENANT} acme")


def test_alert_is_shown_with_what_to_do(line: CommandLine) -> None:
    fired(line)
    shown = line.asked("alerts", "show", DEAD)
    told = line.done("alerts", "show", DEAD)

    assert (shown["severity"], len(shown["open"])) == ("critical", 1)
    assert "what to do" in told
    assert "docs/runbooks/" in told
    assert line("alerts", "show", "None").code == ExitCode.NOT_FOUND
    assert DEAD in line.done("alerts", "definitions")


def test_alert_is_silenced_for_a_time(line: CommandLine) -> None:
    """Until it ends or is ended; a name that no alert has is refused."""
    line.tenant("acme")
    flags = ("--lasts", "2h", "--reason", "upgrade")
    made = line.asked("alerts", "silence", OF_TENANT, "--subject", "acme", *flags)
    fired(line, is_new=False)

    assert [row["id"] for row in line.listed("alerts", "silences")] == [made["id"]]
    assert [row["notice"]["alert"] for row in line.listed("alerts", "notices")] == [DEAD]
    line.done("alerts", "unsilence", made["id"])
    assert line.listed("alerts", "silences") == []
    [ended] = line.listed("alerts", "silences", "--all")
    assert (ended["id"], ended["reason"], ended["until"] < made["until"]) == (
        made["id"],
        "upgrade",
        True,
    )
    assert line.asked("alerts", "show", OF_TENANT)["silences"] == [ended]
    assert line.asked("alerts", "show", DEAD)["silences"] == []
    assert "upgrade" in line.done("alerts", "show", OF_TENANT)
    assert line("alerts", "unsilence", made["id"]).code == ExitCode.NOT_FOUND
    stranger = line("alerts", "silence", OF_TENANT, "--subject", "nobody", *flags)
    assert (stranger.code, "no tenant 'nobody'" in stranger.err) == (ExitCode.NOT_FOUND, True)
    assert line("alerts", "silence", "None", *flags).code == ExitCode.NOT_FOUND
    assert line("alerts", "silence", DEAD, "--lasts", "100d", "--reason", "x").code == (
        ExitCode.WRONG_USE
    )
    long_reason = ("--lasts", "1d", "--reason", "x" * 501)
    assert line("alerts", "silence", DEAD, *long_reason).code == ExitCode.WRONG_USE
    assert line("alerts", "silence", "*", *flags).code == ExitCode.OK


def test_pending_alert_cannot_be_acknowledged(line: CommandLine) -> None:
    line.tenant("acme")

    async def begin() -> None:
        async with Carteiro.open(f"sqlite:///{line.file}") as post:
            findings = [Finding("TableQueuePending", "", 60, 50)]
            await post.backend.alerts.move(findings, post.settings.alert_rules())

    asyncio.run(begin())

    assert line("alerts", "ack", "TableQueuePending").code == ExitCode.REFUSED


def test_test_notice_waits_for_a_worker(line: CommandLine) -> None:
    line.tenant("acme")
    made = line.asked("alerts", "test")
    [row] = line.listed("alerts", "notices")

    assert (row["notice"]["id"], row["channel"]) == (made["id"], "")
    assert "not seen by a worker yet" in line.done("alerts", "notices")


def test_one_shot_process_sends_notices(line: CommandLine) -> None:
    """All that are due, without a worker that stays; their mails are sent by the next run."""
    fired(line)
    mail = {
        "CARTEIRO_NOTICES_MAIL_FROM": "carteiro@ops.example",
        "CARTEIRO_NOTICES_MAIL_TO": "ops@sandbox.test",
    }
    line.processed(**mail)
    waiting = [(row["channel"], row["error"]) for row in line.listed("alerts", "notices")]
    line.processed(**mail)

    assert waiting == [("mail", "its mail is not sent yet")] * 2
    assert len(line.listed("inbox", "ls", "--tenant", "carteiro-notices")) == 2
