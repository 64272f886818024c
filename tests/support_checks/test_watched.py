"""A measurement that stops making progress ends with an error; one that progresses goes on."""

import subprocess
import sys

import pytest

from ours.tickets import id_of, new_topic_name
from support.pages import REPOSITORY

# A shell starts background processes with Ctrl-C ignored, and their children inherit that.
_BEGIN = """import asyncio, signal, threading, time
from watched import watched
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
_ASYNC = """
async def wait():
    with watched("what never comes", lambda: 7, patience_s=0.2):
        await asyncio.Event().wait()
asyncio.run(wait())
"""
_UVLOOP = _ASYNC.replace("asyncio.run", "__import__('uvloop').run")
_POLLING = """
async def wait():
    with watched("what never comes", lambda: 7, patience_s=0.2):
        while True:
            await asyncio.sleep(0.001)
asyncio.run(wait())
"""
_BLOCKED = """
with watched("what never comes", lambda: 7, patience_s=0.2):
    threading.Event().wait()
"""
_MOVING = """
count = 0
with watched("what comes", lambda: count, patience_s=0.5):
    for count in range(100):
        time.sleep(0.01)
print("came")
"""


def _ran(text: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", _BEGIN + text]
    return subprocess.run(
        command, cwd=REPOSITORY / "bench", capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("text", [_ASYNC, _UVLOOP, _POLLING, _BLOCKED])
def test_stalled_measurement_is_an_error(text: str) -> None:
    """It names the awaited thing, the progress so far, and the place of the hang."""
    ran = _ran(text)

    assert ran.returncode == 1
    assert "what never comes: nothing has moved for 0.2 s, at 7" in ran.stderr
    assert "Stalled" in ran.stderr


def test_progress_extends_the_wait() -> None:
    """However long it takes in total."""
    assert _ran(_MOVING).stdout == "came\n"


def test_runs_never_share_a_ticket() -> None:
    """Failures are counted by its id, in one Redis for all runs."""
    one, other = new_topic_name(), new_topic_name()

    assert {id_of(one, each) for each in range(100)}.isdisjoint(
        id_of(other, each) for each in range(100)
    )
