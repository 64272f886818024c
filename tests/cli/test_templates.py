"""Templates from the command line."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from carteiro.cli.exit_codes import ExitCode
from carteiro.model import MOST_TEMPLATES
from support.command_line import CommandLine
from support.unsubscribing import SECRET, URL
from support.unsubscribing import written as written_secrets


def written(line: CommandLine, folder: Path, subject: str = "Hello {{ user.name }}") -> None:
    """The next version of a template of tenant acme."""
    html = folder / "hello.html"
    html.write_text("<p>Hello {{ user.name }}</p>")
    flags = ("--tenant", "acme", "--subject", subject, "--html", str(html))
    line.done("template", "put", "hello", *flags)


def test_each_put_is_a_new_version(line: CommandLine, tmp_path: Path) -> None:
    """The newest is shown unless another is named."""
    line.tenant("acme")
    written(line, tmp_path, "One")
    written(line, tmp_path, "Two")

    newest = line.asked("template", "show", "hello", "--tenant", "acme")
    first = line.asked("template", "show", "hello", "--tenant", "acme", "--version", "1")

    assert (newest["version"], newest["subject"]) == (2, "Two")
    assert (first["version"], first["subject"]) == (1, "One")
    assert len(line.listed("template", "ls", "--tenant", "acme")) == 1
    assert len(line.listed("template", "ls", "--tenant", "acme", "--type", "hello")) == 2
    assert "<p>Hello {{ user.name }}</p>" in line.done(
        "template", "show", "hello", "--tenant", "acme"
    )


def test_option_to_unsubscribe_needs_its_settings(line: CommandLine, tmp_path: Path) -> None:
    """The refusal names the setting; with them the template shows the option."""
    line.tenant("acme")
    html = tmp_path / "hello.html"
    html.write_text("<p>Hello</p>")
    put = ("template", "put", "hello", "--tenant", "acme", "--subject", "S", "--html", str(html))
    settings = {
        "CARTEIRO_UNSUBSCRIBE_URL": URL,
        "CARTEIRO_UNSUBSCRIBE_SECRETS": "env:A_SECRET",
        "A_SECRET": written_secrets(SECRET),
    }

    refused = line(*put, "--one-click-unsubscribe")
    line.done(*put, "--one-click-unsubscribe", **settings)
    [offers] = line.listed("template", "ls", "--tenant", "acme")
    line.done(*put)
    [stops] = line.listed("template", "ls", "--tenant", "acme")

    assert refused.code == ExitCode.WRONG_USE
    assert "--one-click-unsubscribe" in refused.err
    assert "unsubscribe.url" in refused.err
    assert (offers["oneClickUnsubscribe"], stops["oneClickUnsubscribe"]) == (True, False)


def test_list_shows_templates_without_content(line: CommandLine, tmp_path: Path) -> None:
    """Also each version of one type; show has the content, deleted or not."""
    line.tenant("acme")
    written(line, tmp_path)
    of_acme = ("--tenant", "acme")

    [listed] = line.listed("template", "ls", *of_acme)
    line.done("template", "delete", "hello", *of_acme, "--yes")
    [version] = line.listed("template", "ls", *of_acme, "--type", "hello")
    shown = line.asked("template", "show", "hello", *of_acme, "--version", "1")

    assert (listed["hasHtml"], listed["hasText"], listed["deletedAt"]) == (True, False, None)
    assert not {"html", "text"} & (listed.keys() | version.keys())
    assert version["deletedAt"] is not None
    assert version["deletedAt"] == shown["deletedAt"]
    assert shown["html"] == "<p>Hello {{ user.name }}</p>"


@pytest.mark.parametrize("command", [("put", "hello", "--subject", "S"), ("samples",)])
def test_template_over_the_limit_is_refused(
    line: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """The error says how to make room."""
    line.tenant("acme")
    text = tmp_path / "hello.txt"
    text.write_text("Hello")
    body = ("--text", str(text)) if command[0] == "put" else ()
    with closing(sqlite3.connect(line.file)) as db, db:
        db.executemany(
            "INSERT INTO templates (tenant, type, version, subject, text, created_at)"
            " VALUES ('acme', ?, 1, 'S', 'T', 0)",
            [(f"type-{number}",) for number in range(MOST_TEMPLATES)],
        )

    refused = line("template", *command, *body, "--tenant", "acme")
    line.done("template", "delete", "type-7", "--tenant", "acme", "--yes")
    line.done("template", "delete", "type-8", "--tenant", "acme", "--yes")

    assert (refused.code, "carteiro template delete" in refused.err) == (ExitCode.REFUSED, True)
    line.done("template", *command, *body, "--tenant", "acme")


@pytest.mark.parametrize(
    "given",
    [
        ("--var", "user.name=Ana & Co"),
        ("--variables", '{"user": {"name": "Ana & Co"}}'),
        ("--variables", '{"user": {"name": "Eva"}}', "--var", "user.name=Ana & Co"),
    ],
)
def test_preview_inserts_the_variables(
    line: CommandLine, tmp_path: Path, given: tuple[str, ...]
) -> None:
    """Nested variables are typed with dots, or given as JSON; nothing is sent."""
    line.tenant("acme")
    written(line, tmp_path)

    made = line.asked("template", "preview", "hello", "--tenant", "acme", *given)

    assert made["subject"] == "Hello Ana & Co"
    assert made["html"] == "<p>Hello Ana &amp; Co</p>"
    assert line.listed("ls") == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((), "user"),
        (("--var", "user"), "NAME=VALUE"),
        (("--var", ".=x"), "NAME=VALUE"),
        (("--var", "user=x", "--var", "user.name=y"), "value of its own"),
        (("--variables", "nothing"), "not JSON"),
        (("--variables", "[]"), "JSON object"),
    ],
)
def test_invalid_variables_are_refused(
    line: CommandLine, tmp_path: Path, given: tuple[str, ...], says: str
) -> None:
    """The error names the fault."""
    line.tenant("acme")
    written(line, tmp_path)

    ran = line("template", "preview", "hello", "--tenant", "acme", *given)

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert says in ran.err


def test_email_is_made_from_a_template(line: CommandLine, tmp_path: Path) -> None:
    """The variables are filled in."""
    line.tenant("acme")
    written(line, tmp_path)
    flags = ("--tenant", "acme", "--template", "hello", "--var", "user.name=Ana")

    sent = line.asked("send", "--to", "ok@sandbox.test", *flags)
    missing = line("send", "--to", "ok@sandbox.test", *flags[:4])
    unknown = line("send", "--to", "ok@sandbox.test", *flags[:2], "--template", "nothing")

    shown = line.asked("show", sent["outboxId"])
    assert (shown["subject"], shown["templateType"]) == ("Hello Ana", "hello")
    assert (missing.code, unknown.code) == (ExitCode.WRONG_USE, ExitCode.WRONG_USE)


def test_deleted_template_cannot_be_used(line: CommandLine, tmp_path: Path) -> None:
    """Deleting it again finds nothing."""
    line.tenant("acme")
    written(line, tmp_path)

    line.done("template", "delete", "hello", "--tenant", "acme", "--yes")

    assert line.listed("template", "ls", "--tenant", "acme") == []
    again = line("template", "delete", "hello", "--tenant", "acme", "--yes")
    assert again.code == ExitCode.NOT_FOUND


def test_samples_do_not_replace_existing_templates(line: CommandLine, tmp_path: Path) -> None:
    """A tenant gets those that it lacks, once."""
    line.tenant("acme")

    first = line.listed("template", "samples", "--tenant", "acme")
    again = line.listed("template", "samples", "--tenant", "acme")

    assert {"signup_confirmation", "welcome_user"} <= {each["type"] for each in first}
    assert again == []


@pytest.mark.parametrize(
    ("flags", "code", "says"),
    [
        (("--subject", "{{ oops"), ExitCode.WRONG_USE, "subject"),
        (("--subject", "S", "--retry-preset", "never"), ExitCode.WRONG_USE, "--retry-preset: "),
        (("--subject", "S", "--text", "missing.txt"), ExitCode.NOT_FOUND, "missing.txt"),
    ],
)
def test_invalid_template_is_refused(
    line: CommandLine, tmp_path: Path, flags: tuple[str, ...], code: ExitCode, says: str
) -> None:
    """The error names the fault, and there is no new version."""
    line.tenant("acme")
    html = tmp_path / "h.html"
    html.write_text("<p>x</p>")

    ran = line("template", "put", "bad", "--tenant", "acme", "--html", str(html), *flags)

    assert (ran.code, says in ran.err) == (code, True)
    assert line.listed("template", "ls", "--tenant", "acme") == []


def test_template_that_can_never_be_sent_is_refused(line: CommandLine, tmp_path: Path) -> None:
    """Every e-mail made from it would be a dead letter."""
    line.tenant("acme")
    html = tmp_path / "h.html"
    html.write_text("<p>{{ name }}</p><script>x</script>")

    ran = line("template", "put", "bad", "--tenant", "acme", "--subject", "S", "--html", str(html))

    assert ran.code == ExitCode.WRONG_USE
    assert "html: can never be sent, as it has a script element" in ran.err
    assert line.listed("template", "ls", "--tenant", "acme") == []


@pytest.mark.parametrize("command", [("show",), ("preview",), ("delete", "--yes")])
def test_template_of_another_tenant_is_not_found(
    line: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Nothing leaks, nothing changes."""
    line.tenant("acme")
    line.tenant("brasa")
    written(line, tmp_path)

    ran = line("template", command[0], "hello", "--tenant", "brasa", *command[1:])

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert line.listed("template", "ls", "--tenant", "brasa") == []
    assert line.asked("template", "show", "hello", "--tenant", "acme")["version"] == 1
