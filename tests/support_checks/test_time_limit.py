"""A test that hangs fails at its time limit, on every event loop."""

import os
import subprocess
import sys
from pathlib import Path

from support.pages import REPOSITORY

_LOOPS = """import asyncio, uvloop
def pytest_asyncio_loop_factories():
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
"""
_HANGING = """import asyncio
async def test_hanging():
    await asyncio.create_task(hanging())
async def hanging():
    await asyncio.Event().wait()
"""


def test_time_limit_ends_a_hanging_test_and_shows_its_tasks(tmp_path: Path) -> None:
    """The next test runs in the same process."""
    (tmp_path / "loops.py").write_text(_LOOPS, "utf-8")
    (tmp_path / "test_it.py").write_text(_HANGING, "utf-8")
    options = ("-c", str(REPOSITORY / "pyproject.toml"), "-p", "conftest", "-p", "loops")

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--timeout", "0.5", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY / 'tests'}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "2 failed" in ran.stdout, ran.stdout + ran.stderr
    assert ran.stdout.count("in hanging\n") >= 2
