"""Processes of one test run share a server, and it ends with the last of them."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from support.services import is_listening

TESTS = Path(__file__).parents[1]

# A process that uses the server of its run until it gets a signal to go.
USER = """
from support.between_processes import shared_port
from support.redis_server import a_redis
with shared_port("redis", a_redis) as port:
    print(port, flush=True)
    input()
    print("going", flush=True)
"""


class User:
    """A process that shares a server, and knows its port."""

    def __init__(self, run: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(TESTS), "PYTEST_XDIST_TESTRUNUID": run},
        )
        self.port = int(self._heard())

    def tell_to_go(self) -> None:
        """Ask it to exit; it may take a while."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        assert self._heard() == b"going\n"

    def _heard(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends the processes that a test leaves running."""
    with ExitStack() as opened:
        yield opened


def user(run: str, stack: ExitStack) -> User:
    """Another process of a run, with the server already started."""
    started = User(run)
    stack.callback(started.process.communicate)
    stack.callback(started.process.terminate)
    return started


def test_processes_of_a_run_share_one_server(stack: ExitStack) -> None:
    """The second process finds the server of the first; another run has its own."""
    run = uuid4().hex

    first, second, other = user(run, stack), user(run, stack), user(uuid4().hex, stack)

    assert first.port == second.port != other.port


def test_process_that_started_the_server_leaves_last(stack: ExitStack) -> None:
    """Otherwise the others would lose it."""
    run = uuid4().hex
    first, second = user(run, stack), user(run, stack)

    first.tell_to_go()
    third = user(run, stack)
    second.tell_to_go()
    was_there = is_listening(third.port)
    third.tell_to_go()

    assert [each.process.wait(30) for each in (third, second, first)] == [0, 0, 0]
    assert was_there
    assert third.port == first.port
    assert not is_listening(first.port)


def test_dead_server_is_started_again(stack: ExitStack) -> None:
    """The process that started it was killed, and its server ended with it."""
    run = uuid4().hex
    first = user(run, stack)

    first.process.kill()
    first.process.wait()
    for _ in range(1000):  # its watchman ends it
        if not is_listening(first.port):
            break
        time.sleep(0.02)
    second = user(run, stack)

    assert second.port != first.port
    assert is_listening(second.port)
