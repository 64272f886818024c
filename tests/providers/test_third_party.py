"""A provider of another package: found by its entry point, configured, used, classified, and held to the contract.

The package is the one of docs/how-to/add-a-provider.md, installed into a separate folder.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.commands import environment_of_a_command
from support.pages import REPOSITORY, blocks_of

PAGE = "docs/how-to/add-a-provider.md"
PACKAGE, PROJECT, SETTINGS = [each.code for each in blocks_of(PAGE) if each.language != "bash"]
GROUP = "carteiro.providers"
A_RULE = """[[verdicts]]
name = "a"
provider = "folder"
code = "FOLDER_MISSING"
category = "TRANSIENT_ERROR"
retryable = true
scope = "provider"
"""

# What is wrong with each of the files, a line each.
TELL = """
import sys
from carteiro.config import load
from carteiro.errors import ConfigError
for file in sys.argv[1:]:
    try:
        load(file=file, environ={})
    except ConfigError as error:
        print(str(error).replace("\\n", " "))
"""


class Installed:
    """Carteiro with the package, in child processes that work in a separate folder."""

    def __init__(self, folder: Path, package: str = PACKAGE, point: str = "") -> None:
        [(name, place)] = tomllib.loads(PROJECT)["project"]["entry-points"][GROUP].items()
        self.folder = folder
        site = folder / "site"
        about = site / "folder_provider-1.0.dist-info"
        about.mkdir(parents=True)
        (site / "folder_provider").mkdir()
        (site / "folder_provider" / "__init__.py").write_text(package)
        (about / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: folder-provider\nVersion: 1.0\n"
        )
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{point or name} = {place}\n")
        (folder / "carteiro.toml").write_text(SETTINGS)
        self.environment = environment_of_a_command()
        self.environment["PYTHONPATH"] += f"{os.pathsep}{site}"

    def run(
        self, *arguments: str, cwd: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a module of Python."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=cwd or self.folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    def listed(self, *arguments: str) -> list[dict[str, object]]:
        """The JSON output of a command of Carteiro."""
        ran = self.run("carteiro.cli", *arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """The package of the page."""
    return Installed(tmp_path)


def test_mail_is_sent_through_it(installed: Installed) -> None:
    """By its settings, with its own section; while it cannot accept mail, its own rule says so."""
    installed.listed("tenant", "add", "acme")
    mail = ("--tenant", "acme", "--to", "ana@example.com", "--subject", "Hello", "--text", "Hello")
    [waiting] = installed.listed("send", *mail)
    installed.run("carteiro.cli", "process")
    [shown] = installed.listed("show", str(waiting["outboxId"]))
    (installed.folder / "out").mkdir()
    installed.listed("send", *mail)
    installed.run("carteiro.cli", "process")

    texts = {file.read_text() for file in (installed.folder / "out").iterdir()}
    assert texts == {"To: ana@example.com\nSubject: Hello\n\nHello\n"}
    assert "FOLDER_MISSING" in json.dumps(shown)


def test_settings_doctor_and_rules_know_it(installed: Installed) -> None:
    """Its spec alone has its name, its checks, and the meaning of its answers."""
    shown = {each["key"]: each for each in installed.listed("config", "show")}
    found = installed.run("carteiro.cli", "doctor", "--json").stdout
    [judged] = installed.listed("classify", "--provider", "folder", "missing: no folder")

    assert shown["folder.path"] == {"key": "folder.path", "value": "out", "origin": "carteiro.toml"}
    assert "out is not there" in found
    assert (judged["code"], judged["rule"], judged["retryable"]) == (
        "FOLDER_MISSING",
        "folder.missing",
        True,
    )


def test_wrong_settings_are_reported_as_for_any_other(installed: Installed) -> None:
    """Its section is checked by its own shape, its codes are those of its rules."""
    wrong = {
        'provider = "folder, smtp"': "should not have sandbox or noop or folder in a chain",
        '[folder]\npth = "out"': "no such setting; did you mean folder.path?",
        '[folder]\npath = ""': "should be a text that is not empty",
        A_RULE.replace("FOLDER_MISSING", "FOLDER_MISING"): "did you mean FOLDER_MISSING?",
        f'{A_RULE}stage = "rcpt"\n': "answers of folder have none",
    }
    for number, settings in enumerate(wrong):
        (installed.folder / f"{number}.toml").write_text(settings)
    (installed.folder / "site" / "tell.py").write_text(TELL)

    ran = installed.run("tell", *(f"{number}.toml" for number in range(len(wrong))))

    told = ran.stdout.splitlines()
    for number, (says, line) in enumerate(zip(wrong.values(), told, strict=True)):
        assert f"{number}.toml" in line
        assert says in line


@pytest.mark.parametrize(
    ("package", "point", "says"),
    [
        ("import a_library_that_nobody_has", "folder", "cannot be loaded: No module named"),
        ("SPEC = 1", "folder", "should be a ProviderSpec of that name"),
        (PACKAGE, "another", "should be a ProviderSpec of that name"),
        (PACKAGE.replace('name="folder"', 'name="smtp"'), "smtp", "another package has this name"),
        (
            PACKAGE.replace('{"folder": FolderSettings}', '{"log": FolderSettings}'),
            "folder",
            "a section of Carteiro",
        ),
    ],
)
def test_unusable_package_is_named(tmp_path: Path, package: str, point: str, says: str) -> None:
    ran = Installed(tmp_path, package, point).run("carteiro.cli", "config", "show")

    assert ran.returncode != 0
    assert "provider " in ran.stderr
    assert says in ran.stderr


def test_contract_can_be_tested_on_it(installed: Installed, tmp_path: Path) -> None:
    """From a clone, with any installed package: all promises, those of repeated calls among them."""
    arguments = ("pytest", "-q", "-p", "no:cacheprovider", "tests/contract/provider")
    where = {"PROVIDER_UNDER_TEST": "folder", "CARTEIRO_FOLDER_PATH": str(tmp_path)}

    ran = installed.run(*arguments, cwd=REPOSITORY, **where)

    assert ran.returncode == 0, ran.stdout
    assert "skipped" not in ran.stdout
