"""Messages from the command line: send, ls, show, cancel."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from carteiro.cli.exit_codes import ExitCode
from carteiro.errors import ConfigError
from support.command_line import CommandLine

WHOLE = ("--to", "a@example.com", "--subject", "S", "--text", "T")

# --- send ---------------------------------------------------------------------------------------


def test_sent_message_is_found_and_delivered(line: CommandLine) -> None:
    """An accepted e-mail has an id, waits, and is sent by the next worker."""
    message = line.sent("ok@sandbox.test")

    before = line.asked("show", message)
    line.worked_off()
    after = line.asked("show", message)

    assert (before["status"], after["status"]) == ("ENQUEUED", "SENT")
    assert [event["type"] for event in after["events"]][-1] == "SENT"


def test_every_field_of_an_email_has_a_flag(line: CommandLine) -> None:
    line.tenant("acme")
    flags = ("--cc", "c@example.com", "--bcc", "b@example.com", "--reply-to", "r@example.com")
    more = ("--tag", "a", "--tag", "b", "--external-id", "order-1", "--priority", "2")
    times = ("--at", "2030-01-01T00:00:00Z", "--ttl", "2h", "--from", "shop@example.com")

    message = line.sent("ana@example.com", "--tenant", "acme", *flags, *more, *times)

    shown = line.asked("show", message)
    assert shown["tags"] == ["a", "b"]
    assert (shown["externalId"], shown["priority"]) == ("order-1", 2)
    assert (shown["dueAt"], shown["expiresAt"]) == (
        "2030-01-01T00:00:00.000Z",
        "2030-01-01T02:00:00.000Z",
    )
    line.done("cancel", message)


def test_email_can_be_one_document(line: CommandLine, tmp_path: Path) -> None:
    """As over HTTP, from a file or from stdin; flags win."""
    document = {"to": "ok@sandbox.test", "subject": "From a file", "text": "Olá", "externalId": "7"}
    file = tmp_path / "email.json"
    file.write_text(json.dumps(document))

    one = line.asked("send", "--file", str(file), "--subject", "Mine")
    other = line("send", "--file", "-", "--json", stdin=json.dumps(document)).document

    assert line.asked("show", one["outboxId"])["subject"] == "Mine"
    assert line.asked("show", other["outboxId"])["externalId"] == "7"


def test_content_is_typed_or_read_from_files(line: CommandLine, tmp_path: Path) -> None:
    """--text and --html are the content itself; a file has its own option, and only one of both is allowed."""
    file = tmp_path / "words.html"
    file.write_text("<p>Olá</p>", "utf-8")
    given = ("send", "--to", "ok@sandbox.test", "--subject", "S")

    message = line.asked(*given, "--text", "T", "--html-file", str(file))["outboxId"]
    both = line(*given, "--html", "<p>", "--html-file", str(file))
    missing = line(*given, "--text-file", str(tmp_path / "missing"))
    line.worked_off()

    content = line.asked("inbox", "show", message)["content"]
    assert (content["text"], content["html"]) == ("T", "<p>Olá</p>")
    assert (both.code, "--html-file" in both.err) == (ExitCode.WRONG_USE, True)
    assert missing.code == ExitCode.NOT_FOUND


def test_idempotency_key_sends_once(line: CommandLine) -> None:
    """The same again is the first one; another e-mail under the key is refused."""
    first = line.asked(
        "send", "--to", "ok@sandbox.test", "--subject", "S", "--text", "T", "--key", "k"
    )
    again = line.asked(
        "send", "--to", "ok@sandbox.test", "--subject", "S", "--text", "T", "--key", "k"
    )
    other = line("send", "--to", "ok@sandbox.test", "--subject", "Z", "--text", "T", "--key", "k")

    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["outboxId"] == again["outboxId"]
    assert other.code == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (("--to", "nobody", "--subject", "S", "--text", "T"), ExitCode.WRONG_USE, "--to: "),
        (("--subject", "S", "--text", "T"), ExitCode.WRONG_USE, "--to: "),
        ((*WHOLE, "--reply-to", "bad"), ExitCode.WRONG_USE, "--reply-to: is not an e-mail"),
        ((*WHOLE, "--cc", "bad"), ExitCode.WRONG_USE, "--cc: is not an e-mail"),
        ((*WHOLE, "--key", "k" * 300), ExitCode.WRONG_USE, "--key: "),
        ((*WHOLE, "--key", " "), ExitCode.WRONG_USE, "--key: must be 1 to 128 printable ASCII"),
        (("--to", "a@example.com", "--text", "T"), ExitCode.WRONG_USE, "--subject: "),
        (("--to", "a@example.com", "--ttl", "soon"), ExitCode.WRONG_USE, "is not a duration"),
        (("--to", "a@example.com", "--at", "soon"), ExitCode.WRONG_USE, "is not a time"),
        (("--to", "a@example.com", "--var", "a=b"), ExitCode.WRONG_USE, "--template"),
        (("--file", "missing.json"), ExitCode.NOT_FOUND, "missing.json cannot be read"),
        (("--tenant", "nobody", "--to", "a@example.com"), ExitCode.NOT_FOUND, "tenant add"),
    ],
)
def test_invalid_email_is_refused_whole(
    line: CommandLine, flags: tuple[str, ...], code: ExitCode, says: str
) -> None:
    """The error names the fault, and nothing is stored."""
    line.sent()

    ran = line("send", *flags)

    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert len(line.listed("ls")) == 1


def test_fault_has_the_name_that_the_user_wrote(line: CommandLine, tmp_path: Path) -> None:
    """The option, or the field of the file."""
    line.tenant("acme")
    file = tmp_path / "email.json"
    file.write_text('{"to": "a@example.com", "subject": "S", "text": "T", "replyTo": "bad"}')

    ran = line("send", "--tenant", "acme", "--file", str(file), "--cc", "bad")

    assert ran.code == ExitCode.WRONG_USE
    assert "replyTo: is not" in ran.err
    assert "--cc: is not" in ran.err


def test_disabled_tenant_does_not_send(line: CommandLine) -> None:
    """The error says how to enable it."""
    line.tenant("acme")
    line.done("tenant", "disable", "acme")

    ran = line("send", "--tenant", "acme", "--to", "a@example.com", "--subject", "S", "--text", "T")

    assert ran.code == ExitCode.REFUSED
    assert "carteiro tenant enable acme" in ran.err


# --- ls, show -----------------------------------------------------------------------------------


def test_messages_are_listed_newest_first_and_filtered(line: CommandLine) -> None:
    """Every filter counts, and all pages together are the whole list."""
    line.tenant("acme")
    first = line.sent("ok@sandbox.test", "--tag", "red", "--external-id", "1")
    line.worked_off()
    second = line.sent("ana@example.com", "--tenant", "acme")

    assert [row["outboxId"] for row in line.listed("ls")] == [second, first]
    for flags, found in [
        (("--tenant", "acme"), [second]),
        (("--status", "sent"), [first]),
        (("--to", "ana@example.com"), [second]),
        (("--tenant", "default", "--tag", "red"), [first]),
        (("--tenant", "default", "--external-id", "1"), [first]),
        (("--provider-id", f"sandbox-{first}-1"), [first]),
        (("--tenant", "acme", "--provider-id", f"sandbox-{first}-1"), []),
        (("--kind", "email:send", "--limit", "0"), [second, first]),
        (("--since", "1h"), [second, first]),
        (("--before", "1h"), []),
        (("--limit", "1"), [second]),
    ]:
        assert [row["outboxId"] for row in line.listed("ls", *flags)] == found, flags


def test_incomplete_list_is_marked(line: CommandLine) -> None:
    """A list that was cut must not look whole."""
    line.sent()
    line.sent()

    assert "--limit 0" in line("ls", "--limit", "1").err
    assert line("ls", "--limit", "2").err == ""


def test_table_has_the_main_fields(line: CommandLine) -> None:
    """Id, tenant, state and address are on one line."""
    message = line.sent("ana@example.com")

    [heading, row] = line.done("ls").splitlines()

    assert heading.split()[:4] == ["id", "tenant", "status", "to"]
    assert row.split()[:4] == [message, "default", "ENQUEUED", "ana@example.com"]


def test_erased_message_is_listed_as_erased(line: CommandLine) -> None:
    """Its kind in place of the address would look like an address."""
    line.tenant("acme")
    document = (
        '{"to":"ana@example.com","subject":"S","text":"T",'
        '"recipient":{"externalId":"r-1","email":"ana@example.com"}}'
    )
    assert line("send", "--tenant", "acme", "--file", "-", stdin=document).code == ExitCode.OK
    [recipient] = line.listed("recipient", "ls", "--tenant", "acme")
    line.done("erase", "--recipient", recipient["recipientId"], "--tenant", "acme", "--yes")

    [_, row] = line.done("ls").splitlines()

    assert row.split()[2:4] == ["CANCELLED", "(erased)"]


def test_foreign_text_does_not_control_the_terminal(line: CommandLine) -> None:
    """Escape sequences and markup are shown, not executed."""
    message = line.sent("ana@example.com", "--subject", "[red]c", "--text", "a\x1b]0;b\x07\nc")
    line.worked_off()

    assert "[red]c" in line.done("ls")
    assert line.done("inbox", "show", message).endswith("\n\na\\x1b]0;b\\x07\nc\n")


@pytest.mark.parametrize("command", [("show",), ("explain",), ("cancel",)])
def test_message_of_another_tenant_is_not_found(
    line: CommandLine, command: tuple[str, ...]
) -> None:
    """With --tenant it looks like an unknown one, and is not changed."""
    line.tenant("acme")
    message = line.sent("ana@example.com")

    unknown = str(uuid4())

    stranger = line(*command, message, "--tenant", "acme")
    nobody = line(*command, unknown, "--tenant", "acme")

    assert stranger.code == nobody.code == ExitCode.NOT_FOUND
    assert stranger.err.replace(message, "ID") == nobody.err.replace(unknown, "ID")
    assert stranger.out.replace(message, "ID") == nobody.out.replace(unknown, "ID")
    assert line.asked("show", message)["status"] == "ENQUEUED"


@pytest.mark.parametrize("command", ["show", "explain", "cancel"])
def test_invalid_id_is_refused(line: CommandLine, command: str) -> None:
    """The error says how to find one."""
    line.sent()

    ran = line(command, "not-an-id")

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert "carteiro ls" in ran.err


# --- cancel -------------------------------------------------------------------------------------


def test_waiting_message_is_cancelled(line: CommandLine) -> None:
    """It is not sent afterwards."""
    message = line.sent()

    [answer] = line.listed("cancel", message)
    line.worked_off()

    assert answer == {"outboxId": message, "answer": "cancelled"}
    assert line.asked("show", message)["status"] == "CANCELLED"


def test_finished_message_cannot_be_cancelled(line: CommandLine) -> None:
    """The exit code says so, also among others."""
    finished = line.sent()
    line.worked_off()
    waiting = line.sent()

    ran = line("cancel", waiting, finished, "--json")

    assert ran.code == ExitCode.REFUSED
    assert [each["answer"] for each in ran.documents] == ["cancelled", "finished"]


def test_doubts_of_a_message_are_counted(line: CommandLine) -> None:
    """In JSON always, in tables where there are any."""
    lost = line.sent("lost-reply@sandbox.test")
    line.worked_off(CARTEIRO_DELIVERY_CALL_LIMIT_MS="50")
    well = line.sent()
    line.worked_off()

    assert line.asked("show", lost)["inDoubt"] == 1
    assert "in doubt" in line.done("show", lost)
    assert line.asked("show", well)["inDoubt"] == 0
    assert "in doubt" not in line.done("show", well)


# --- the provider of a command --------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ("send", *WHOLE),
        ("dead", "redrive", "--all", "--yes"),
        ("dead", "edit", "{dead}", "--to", "ana@example.com"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_mail_of_a_command_with_a_provider_does_not_go_to_the_sandbox(
    line: CommandLine, command: tuple[str, ...]
) -> None:
    """The command has the installation's settings, the worker has none."""
    dead = line.dead()
    line.done(*(each.format(dead=dead) for each in command), CARTEIRO_PROVIDER="smtp")

    with pytest.raises(ConfigError, match="this installation sends through smtp"):
        line.worked_off()
    assert line.listed("inbox", "ls") == []


@pytest.mark.parametrize("provider", ["sandbox", "resend"])
def test_command_does_not_undo_the_choice_of_workers(line: CommandLine, provider: str) -> None:
    """Only a worker or an API process may replace a provider."""
    line.done("send", *WHOLE, CARTEIRO_PROVIDER="smtp")

    line.done("send", *WHOLE, CARTEIRO_PROVIDER=provider)

    with pytest.raises(ConfigError, match="this installation sends through smtp"):
        line.worked_off()
