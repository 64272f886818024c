"""A missing test server is reported, and a started one is never left behind."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.services import HOST, Service, a_folder, free_port, missing, program

TESTS = Path(__file__).parents[1]

# A test run that starts a server, and will be killed.
RUN = """
from support.redis_server import a_redis
with a_redis() as server:
    print(server.port, server.folder, flush=True)
    input()
"""


class _Broken(Service):
    def command(self) -> list[str]:
        return ["sh", "-c", "echo no such setting >&2; exit 1"]

    def is_ready(self) -> bool:
        return False


def test_missing_program_is_a_skip_on_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary says what to install."""
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="no-such-server is missing: run make services"):
        program("no-such-server")


def test_missing_program_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """There everything is tested."""
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="it is missing: run make services"):
        missing("it")


def test_server_that_does_not_start_says_why() -> None:
    """It fails before the timeout."""
    with (
        a_folder("broken") as folder,
        pytest.raises(pytest.fail.Exception, match="no such setting"),
    ):
        _Broken(folder).start()


def test_ports_of_two_servers_differ() -> None:
    """Also under the same random seed."""
    assert len({free_port() for _ in range(5)}) > 1


def test_server_ends_with_the_tests_that_started_it() -> None:
    """Also when they are killed: neither process nor folder stays behind."""
    program("redis-server")
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        port, folder = run.stdout.readline().split()
        run.kill()

    for _ in range(1500):
        if not Path(folder).exists():
            break
        time.sleep(0.02)
    assert not Path(folder).exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, int(port)))
