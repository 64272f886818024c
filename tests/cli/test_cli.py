"""The command line: its output, and its errors."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_version_is_printed(tmp_path: Path) -> None:
    """One line, for people and scripts."""
    ran = carteiro("version", folder=tmp_path)
    flag = carteiro("--version", folder=tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("carteiro ")
    assert flag.stdout == ran.stdout


def test_commands_are_listed_without_a_command(tmp_path: Path) -> None:
    ran = carteiro(folder=tmp_path)

    for command in ("up", "api", "worker", "process", "send", "dead", "tenant", "doctor", "config"):
        assert command in ran.stdout + ran.stderr


def test_each_setting_is_shown_with_its_origin(tmp_path: Path) -> None:
    """Default, file and environment differ."""
    file = tmp_path / "mine.toml"
    file.write_text('provider = "noop"\n')

    ran = carteiro(
        "config", "show", "--config", "mine.toml", folder=tmp_path, CARTEIRO_API_PORT="9000"
    )

    lines = ran.stdout.splitlines()
    assert 'provider = "noop"  # mine.toml' in lines
    assert "api.port = 9000  # environment variable CARTEIRO_API_PORT" in lines
    assert 'api.host = "127.0.0.1"  # default' in lines


def test_settings_are_shown_as_json_for_programs(tmp_path: Path) -> None:
    ran = carteiro("config", "show", "--json", folder=tmp_path, CARTEIRO_STORE="memory://")

    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    shown = {each["key"]: (each["value"], each["origin"]) for each in lines}
    assert shown["store"] == ("memory://", "environment variable CARTEIRO_STORE")
    assert shown["api.port"] == (8025, "default")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("up", "--provider", "pigeon", "--port", "0"), "provider = 'pigeon' (from flag)"),
        (("up", "--store", "oracle://x", "--port", "0"), "store = 'oracle://x' (from flag)"),
        (("up", "--port", "70000"), "api.port = 70000 (from flag)"),
        (("up", "--config", "missing.toml"), "missing.toml: cannot be read"),
        (("api", "--store", "oracle://x", "--port", "0"), "store = 'oracle://x' (from flag)"),
        (("api", "--store", "memory://", "--port", "0"), "store = 'memory://' (from flag)"),
        (("process", "--provider", "pigeon"), "provider = 'pigeon' (from flag)"),
        (("ls", "--store", "oracle://x"), "store = 'oracle://x' (from flag)"),
        (("migrate", "--store", "oracle://x"), "store = 'oracle://x' (from flag)"),
        (("worker", "--provider", "pigeon"), "provider = 'pigeon' (from flag)"),
        (("config", "show", "--config", "missing.toml"), "missing.toml: cannot be read"),
    ],
)
def test_wrong_setting_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    """The setting and its origin; no traceback, and no start message."""
    ran = carteiro(*arguments, folder=tmp_path)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"carteiro: {says}")
    assert len(ran.stderr.splitlines()) == 1


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
