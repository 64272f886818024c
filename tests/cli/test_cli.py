"""The command line: its output, and its errors."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine
from support.commands import environment_of_a_command


def carteiro(*arguments: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this folder, with these settings in its environment."""
    return subprocess.run(
        [sys.executable, "-m", "carteiro", *arguments],
        cwd=folder,
        env=environment_of_a_command(**settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_version_is_printed(tmp_path: Path, line: CommandLine) -> None:
    """One line, for people and scripts."""
    ran = carteiro("version", folder=tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("carteiro ")
    assert line.done("--version") == ran.stdout


def test_a_command_imports_no_other(tmp_path: Path) -> None:
    """Each command starts quickly: the API, its libraries and the stores are for those that use them."""
    code = "import sys; from carteiro.cli import app; app(['version'], standalone_mode=False); print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    loaded = set(done.stdout.split())
    assert "carteiro.cli.version" in loaded
    assert not loaded & {"carteiro.app", "carteiro.stores", "fastapi", "jinja2", "uvicorn"}


def test_commands_are_listed_without_a_command(line: CommandLine) -> None:
    ran = line()

    for command in ("up", "api", "worker", "process", "send", "dead", "tenant", "doctor", "config"):
        assert command in ran.out + ran.err


def test_each_setting_is_shown_with_its_origin(tmp_path: Path, line: CommandLine) -> None:
    """Default, file and environment differ."""
    file = tmp_path / "mine.toml"
    file.write_text('provider = "noop"\n')

    shown = line.done("config", "show", "--config", str(file), CARTEIRO_API_PORT="9000")

    lines = shown.splitlines()
    assert f'provider = "noop"  # {file}' in lines
    assert "api.port = 9000  # environment variable CARTEIRO_API_PORT" in lines
    assert 'api.host = "127.0.0.1"  # default' in lines


def test_settings_are_shown_as_json_for_programs(line: CommandLine) -> None:
    """The same, to be read by a machine."""
    listed = line.listed("config", "show", CARTEIRO_STORE="memory://")

    shown = {each["key"]: (each["value"], each["origin"]) for each in listed}
    assert shown["store"] == ("memory://", "environment variable CARTEIRO_STORE")
    assert shown["api.port"] == (8025, "default")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("up", "--provider", "pigeon", "--port", "0"), "provider = 'pigeon' (from --provider)"),
        (("up", "--store", "oracle://x", "--port", "0"), "store = 'oracle://x' (from --store)"),
        (("up", "--port", "70000"), "api.port = 70000 (from --port)"),
        (("up", "--config", "missing.toml"), "missing.toml: cannot be read"),
        (("api", "--store", "oracle://x", "--port", "0"), "store = 'oracle://x' (from --store)"),
        (("api", "--store", "memory://", "--port", "0"), "store = 'memory://' (from --store)"),
        (("process", "--provider", "pigeon"), "provider = 'pigeon' (from --provider)"),
        (("ls", "--store", "oracle://x"), "store = 'oracle://x' (from --store)"),
        (("migrate", "--store", "oracle://x"), "store = 'oracle://x' (from --store)"),
        (("worker", "--provider", "pigeon"), "provider = 'pigeon' (from --provider)"),
        (("config", "show", "--config", "missing.toml"), "missing.toml: cannot be read"),
    ],
)
def test_wrong_setting_is_one_line_and_exit_code_2(
    line: CommandLine, arguments: tuple[str, ...], says: str
) -> None:
    """The setting and its origin; no traceback, and no start message."""
    ran = line(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"carteiro: {says}")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("up", "--port", "x"), "'--port': must be an integer"),
        (("ls", "--limit", "-1"), "'--limit': must be at least 0"),
        (("tenant", "set", "acme", "--rate", "x"), "'--rate': must be a number"),
        (("ls", "--status", "lost"), "'--status': 'lost' is not one of 'enqueued'"),
        (("dead", "group", "--by", "size"), "'--by': 'size' is not one of 'code'"),
    ],
)
def test_wrong_value_of_an_option_is_refused_in_plain_words(
    line: CommandLine, arguments: tuple[str, ...], says: str
) -> None:
    """Without the words of a library."""
    ran = line(*arguments)

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert says in ran.err


@pytest.mark.parametrize(
    "command",
    [("up", "--port", "0"), ("worker",), ("process",), ("migrate",), ("tenant", "add", "a")],
)
def test_unusable_store_is_one_line_and_exit_code_1(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """The file, and what to check."""
    ran = carteiro(*command, "--store", "sqlite:///no/such/folder.db", folder=tmp_path)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "no/such/folder.db cannot be opened" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_port_in_use_is_reported_before_anything_starts(tmp_path: Path) -> None:
    """One line, exit code 1, and not even a file is created."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = carteiro("up", "--port", str(port), folder=tmp_path)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"carteiro: cannot listen on 127.0.0.1:{port}")
    assert len(ran.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
