"""Dead letters from the command line."""

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from carteiro.app import Carteiro
from carteiro.cli.exit_codes import ExitCode
from carteiro.dead_letters.redrive import revise
from carteiro.model import MessageId
from support.builders import ACME
from support.command_line import CommandLine
from support.recovering import PROVIDER, lost
from support.set_ups import postgres_url
from support.syncing import inodes, watched_syncs


@pytest.mark.parametrize("command", ["ls", "group"])
def test_empty_list_is_reported_to_people(line: CommandLine, command: str) -> None:
    """Programs get no output."""
    line.tenant("acme")

    assert line("dead", command).err == "No dead letters found.\n"
    ran = line("dead", command, "--json")
    assert (ran.out, ran.err) == ("", "")


def test_dead_letters_are_listed_shown_and_grouped(line: CommandLine) -> None:
    """Every filter counts; one is shown with its history."""
    line.tenant("acme")
    mine = line.dead("--tenant", "acme")
    other = line.dead()

    assert [row["outboxId"] for row in line.listed("dead", "ls")] == [other, mine]
    for flags, found in [
        (("--tenant", "acme"), [mine]),
        (("--reason", "permanent_error"), [other, mine]),
        (("--reason", "expired"), []),
        (("--code", "550"), [other, mine]),
        (("--category", "permanent_error"), [other, mine]),
        (("--text", "no such thing"), []),
        (("--since", "1h"), [other, mine]),
        (("--before", "1h"), []),
        (("--redriven",), []),
        (("--no-redriven",), [other, mine]),
        (("--limit", "1"), [other]),
    ]:
        assert [row["outboxId"] for row in line.listed("dead", "ls", *flags)] == found, flags
    assert line.asked("dead", "show", mine)["events"][-1]["type"] == "FAILED"
    assert line.listed("dead", "group", "--by", "tenant", "--tenant", "acme")[0]["count"] == 1
    assert [group["key"] for group in line.listed("dead", "group")] == ["550"]


def test_dead_letter_is_shown_with_its_content(line: CommandLine) -> None:
    """Recipient, subject and the beginning of the text: needed for an edit."""
    message = line.dead("--text", f"Olá,\n{'a' * 300}")

    shown = [" ".join(row.split()) for row in line.done("dead", "show", message).splitlines()]

    assert {"to bounce-550@sandbox.test", "subject Bom dia"} <= set(shown)
    assert f"text Olá, {'a' * 195}…" in shown


def test_html_is_labelled_as_html(line: CommandLine) -> None:
    """Where there is no text part."""
    line.tenant("acme")
    asked = ("--to", "bounce-550@sandbox.test", "--subject", "Oi", "--html", "<p>Olá</p>")
    message = line.asked("send", "--tenant", "acme", *asked)["outboxId"]
    line.worked_off()

    shown = [" ".join(row.split()) for row in line.done("dead", "show", message).splitlines()]

    assert "html <p>Olá</p>" in shown
    assert not [row for row in shown if row.startswith("text ")]


def test_redriven_letter_is_sent_once(line: CommandLine) -> None:
    """A second redrive sends nothing."""
    message = line.dead()

    [first] = line.listed("dead", "redrive", message)
    again = line("dead", "redrive", message, "--json")

    assert first == {"outboxId": message, "answer": "redriven"}
    assert (again.code, again.documents[0]["answer"]) == (ExitCode.REFUSED, "already_redriven")
    assert [row["outboxId"] for row in line.listed("dead", "ls", "--redriven")] == [message]


def test_all_that_match_are_redriven_and_no_other(line: CommandLine) -> None:
    """Twice in a row sends once; the second redrive has nothing to send."""
    line.tenant("acme")
    mine = line.dead("--tenant", "acme")
    other = line.dead()

    first = line.asked("dead", "redrive", "--all", "--tenant", "acme", "--yes")
    again = line.asked("dead", "redrive", "--all", "--tenant", "acme", "--yes", "--rate", "100")
    line.worked_off()
    shown = [line.asked("redrives", "show", each["id"]) for each in (first, again)]

    assert (first["state"], first["total"], first["companyId"]) == ("running", 1, "acme")
    assert [(each["state"], each["redriven"], each["failed"]) for each in shown] == [
        ("finished", 1, 1),
        ("finished", 0, 0),
    ]
    assert shown[1]["maxRatePerSecond"] == 100
    assert [len(line.asked("show", each)["events"]) for each in (mine, other)] == [10, 5]


def test_plan_shows_what_would_be_redriven(line: CommandLine) -> None:
    """And redrives nothing."""
    line.tenant("acme")
    mine = line.dead("--tenant", "acme")
    line.dead()

    plan = line.asked("dead", "redrive", "--all", "--tenant", "acme", "--plan")
    table = line.done("dead", "redrive", "--all", "--plan")

    assert (plan["total"], plan["sample"]) == (1, [mine])
    assert [(each["key"], each["count"]) for each in plan["tenants"]] == [("acme", 1)]
    assert [each["cause"] for each in plan["groups"]] == ["sandbox: No such user here"]
    assert (
        "sandbox: 550 No such user here" in table
    )  # one tenant alone does not see the code of a shared group
    assert "No such user here" in line.done("dead", "group", "--by", "group")
    assert line.asked("show", mine)["status"] == "FAILED"


def test_redrive_without_a_worker_says_so(line: CommandLine) -> None:
    """It continues when there is one."""
    line.dead()
    with closing(sqlite3.connect(line.file)) as db, db:
        db.execute("UPDATE leads SET seen_at = 0")

    ran = line("dead", "redrive", "--all", "--yes")

    assert "No worker is running" in ran.err


def test_edited_letter_goes_to_the_new_address(line: CommandLine) -> None:
    """A new revision is sent; an invalid one is refused, and nothing changes."""
    message = line.dead()

    bad = line("dead", "edit", message, "--to", "nobody")
    line.done("dead", "edit", message, "--to", "ok@sandbox.test", "--subject", "Again")
    line.worked_off()

    assert (bad.code, "to: " in bad.err) == (ExitCode.WRONG_USE, True)
    shown = line.asked("show", message)
    assert (shown["status"], shown["to"], shown["subject"]) == ("SENT", "ok@sandbox.test", "Again")
    assert shown["revision"] == 2
    assert line("dead", "show", message).code == ExitCode.NOT_FOUND


def test_edit_takes_text_or_files(line: CommandLine, tmp_path: Path) -> None:
    """As send does: --text is the text, --html-file a file."""
    message, file = line.dead(), tmp_path / "words.html"
    file.write_text("<p>New</p>")

    line.done(
        *("dead", "edit", message, "--to", "ok@sandbox.test"),
        *("--text", "New", "--html-file", str(file)),
    )
    line.worked_off()

    content = line.asked("inbox", "show", message)["content"]
    assert (content["text"], content["html"]) == ("New", "<p>New</p>")


def test_edit_of_an_outdated_revision_is_refused(line: CommandLine, tmp_path: Path) -> None:
    """The other edit stays; exit code 4 means that a retry can succeed."""
    message, changes = line.dead(), tmp_path / "changes.json"
    os.mkfifo(changes)  # opened by the command once it has read the letter
    other = Thread(target=_edit_and_bury, args=(line, message, changes))
    other.start()

    ran = line("dead", "edit", message, "--file", str(changes))
    other.join()

    assert (ran.code, "in the meantime" in ran.err) == (ExitCode.REFUSED, True)
    shown = line.asked("show", message)
    assert (shown["subject"], shown["revision"], shown["status"]) == ("Theirs", 2, "FAILED")


def _edit_and_bury(line: CommandLine, message: str, changes: Path) -> None:
    """Edit a dead letter while a command waits for its changes, let it die again, and then supply them."""
    with changes.open("w") as waiting:
        asyncio.run(_edited_and_buried(line, MessageId(message)))
        waiting.write('{"subject": "Mine"}')


async def _edited_and_buried(line: CommandLine, message: MessageId) -> None:
    async with Carteiro.open(f"sqlite:///{line.file}") as post:
        row = await post.backend.reading.message(message)
        assert row is not None
        revision = await revise(row, {"subject": "Theirs"}, backend=post.backend)
        await post.backend.dead_letters.redrive([message], by="rui", revision=revision)
        await post.work_off()


def test_dead_letter_says_what_it_waits_for(line: CommandLine) -> None:
    """Or why nothing redrives it, in `dead show` and `explain`; its tenant can switch it off."""
    line.tenant(ACME)
    other, waiting = line.dead(), asyncio.run(_lost_in_an_outage(line))

    shown = line.asked("dead", "show", waiting)["automaticRedrive"]
    assert (shown["provider"], shown["round"], shown["rounds"]) == (PROVIDER, 1, 3)
    assert shown["notBefore"] > line.asked("dead", "show", waiting)["movedToDLQAt"]
    for command in (("dead", "show"), ("explain",)):
        said = line.done(*command, waiting)
        assert "automatic redrive 1 of 3. The provider still fails." in " ".join(said.split()), (
            command
        )
        assert "not before" in said
        assert "not a temporary one of its provider" in " ".join(
            line.done(*command, other).split()
        ), command
    assert line.asked("explain", waiting)["automaticRedrive"] == shown
    line.done("tenant", "set", ACME, "--no-automatic-redrive")
    said = line.asked("dead", "show", waiting)["automaticRedrive"]
    assert (said["provider"], said["text"]) == (
        None,
        "Automatic redrive is switched off for its tenant.",
    )


async def _lost_in_an_outage(line: CommandLine) -> MessageId:
    async with Carteiro.open(f"sqlite:///{line.file}") as post:
        return await lost(post.backend)


@pytest.mark.parametrize("rate", ["inf", "nan", "0", "100001", "fast"])
def test_invalid_rate_is_refused(line: CommandLine, rate: str) -> None:
    """Nothing is redriven."""
    message = line.dead()

    ran = line("dead", "redrive", "--all", "--yes", "--rate", rate)

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert line.asked("show", message)["status"] == "FAILED"


def test_line_nested_too_deep_is_named(line: CommandLine, tmp_path: Path) -> None:
    """Nothing changes, as with any invalid line."""
    line.dead()
    [entry] = line.listed("dead", "ls")
    deep = '{"a":' * 300 + "1" + "}" * 300
    text = json.dumps(entry | {"originalData": None}).replace(
        '"originalData": null', f'"originalData": {deep}'
    )
    file = tmp_path / "dead.jsonl"
    file.write_text(text)

    ran = line("dead", "import", str(file))

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert "line 1: originalData" in ran.err


def test_purged_export_can_be_imported(line: CommandLine, tmp_path: Path) -> None:
    """Nothing is lost on the way; importing twice puts each back once."""
    message = line.dead()
    before = line.asked("dead", "show", message)
    file = tmp_path / "dead.jsonl"

    exported = line.asked("dead", "export", str(file))
    purged = line.asked("dead", "purge", "--yes")
    gone = line("dead", "show", message)
    restored = line.asked("dead", "import", str(file))
    again = line.asked("dead", "import", str(file))

    assert (exported["exported"], purged["dropped"]) == (1, 1)
    assert file.stat().st_mode & 0o777 == 0o600
    assert gone.code == ExitCode.NOT_FOUND
    assert (restored, again["restored"]) == ({"entries": 1, "restored": 1}, 0)
    assert line.asked("dead", "show", message) == before


def test_export_is_synced_before_the_report(line: CommandLine, tmp_path: Path) -> None:
    """The file, then its name: a purge after it loses nothing in a power cut."""
    line.dead()
    file = tmp_path / "kept" / "dead.jsonl"
    file.parent.mkdir()

    with watched_syncs() as synced:
        line.done("dead", "export", str(file))

    assert synced == inodes(file, file.parent)


def test_export_to_stdout_is_json_lines(line: CommandLine) -> None:
    """Nothing else is printed."""
    message = line.dead()

    [entry] = [json.loads(row) for row in line.done("dead", "export", "-").splitlines()]

    assert (entry["outboxId"], entry["lastFailureCode"]) == (message, "550")
    assert entry["events"]


@pytest.mark.servers
@pytest.mark.parametrize("name", ["jobId", "companyId", "lastFailureCode"])
def test_entry_with_a_text_that_no_store_can_hold_is_refused(
    line: CommandLine, tmp_path: Path, name: str
) -> None:
    """The error is about the file, not the store; the same on each."""
    line.dead()
    [entry] = [json.loads(row) for row in line.done("dead", "export", "-").splitlines()]
    file = tmp_path / "dead.jsonl"
    file.write_text(json.dumps(entry | {name: entry[name] + "\0"}))

    on_sqlite = line("dead", "import", str(file))
    on_postgres = line("dead", "import", str(file), CARTEIRO_STORE=postgres_url(tmp_path))

    assert on_sqlite == on_postgres
    assert (on_sqlite.code, "line 1" in on_sqlite.err) == (ExitCode.WRONG_USE, True)


def test_existing_files_are_safe(line: CommandLine, tmp_path: Path) -> None:
    """An export overwrites nothing, an import of another file changes nothing."""
    line.dead()
    file = tmp_path / "mine.txt"
    file.write_text("mine\n")

    export = line("dead", "export", str(file))
    imported = line("dead", "import", str(file))
    missing = line("dead", "import", str(tmp_path / "missing"))

    assert (export.code, file.read_text()) == (ExitCode.REFUSED, "mine\n")
    assert (imported.code, "line 1" in imported.err) == (ExitCode.WRONG_USE, True)
    assert missing.code == ExitCode.NOT_FOUND


def test_purge_deletes_matching_dead_letters(line: CommandLine) -> None:
    """Young ones stay, redriven ones stay, and the message can still be redriven by its id."""
    old, redriven = line.dead(), line.dead()
    line.done("dead", "redrive", redriven)

    young = line.asked("dead", "purge", "--older-than", "1h", "--yes")
    all_of_them = line.asked("dead", "purge", "--older-than", "0s", "--yes")

    assert (young["dropped"], all_of_them["dropped"]) == (0, 1)
    assert [row["outboxId"] for row in line.listed("dead", "ls")] == [redriven]
    assert line.listed("dead", "redrive", old)[0]["answer"] == "redriven"


def test_refused_redrive_names_the_state_of_the_message(line: CommandLine) -> None:
    """The id is right: the message is just not dead."""
    line.tenant("acme")
    message = line.sent()

    ran = line("dead", "redrive", message)

    assert ran.code == ExitCode.NOT_FOUND
    assert ran.err == f"Message {message} is not a dead letter: it is ENQUEUED.\n"


@pytest.mark.parametrize("command", [("show",), ("redrive",), ("edit", "--subject", "X")])
def test_dead_letter_of_another_tenant_is_not_found(
    line: CommandLine, command: tuple[str, ...]
) -> None:
    """Nothing leaks, nothing changes."""
    message = line.dead()
    line.tenant("acme")

    ran = line("dead", command[0], message, *command[1:], "--tenant", "acme")

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert line.asked("show", message)["status"] == "FAILED"


@pytest.mark.parametrize("flags", [(), ("0190a0a0-0000-7000-8000-000000000000", "--all")])
def test_redrive_needs_ids_or_all(line: CommandLine, flags: tuple[str, ...]) -> None:
    """Both or neither is refused: a typo must not send everything."""
    line.dead()

    ran = line("dead", "redrive", *flags, "--yes")

    assert (ran.code, "--all" in ran.err) == (ExitCode.WRONG_USE, True)
