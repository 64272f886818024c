"""Huey on SQLite, durable (fsync on) and without results: enqueue, then drain with one thread.

Huey removes a job when it pops it: no lease, no acknowledgement, nothing survives a crash.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from huey import SqliteHuey

from figures import measured, report

PAYLOAD = json.dumps({"body": "x" * 989})  # 1,001 bytes


def _opened(path: Path) -> SqliteHuey:
    return SqliteHuey("bench", filename=str(path), fsync=True, results=False)


def _enqueue(path: Path, jobs: int) -> None:
    no_op = _opened(path).task(name="no_op")(lambda payload: None)  # noqa: ARG005 - it is a no-op
    with measured("enqueue", jobs) as figure:
        for _ in range(jobs):
            no_op(PAYLOAD)
    report(figure)


def _drain(path: Path, jobs: int) -> None:
    huey = _opened(path)
    left, done = jobs, threading.Event()

    def no_op(payload: str) -> None:  # noqa: ARG001 - it is a no-op
        nonlocal left
        left -= 1
        if not left:
            done.set()

    huey.task(name="no_op")(no_op)
    consumer = huey.create_consumer(workers=1, periodic=False)
    with measured("drain", jobs, lambda: left) as figure:
        consumer.start()
        done.wait()
    consumer.stop(graceful=True)
    assert huey.pending_count() == 0
    report(figure)


def main() -> None:
    """Fill a new file, then drain it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        _drain(asked.drain, asked.jobs)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "huey.db"
        _enqueue(path, asked.jobs)
        command = [sys.executable, "-m", "peers.huey_sqlite", "--drain", str(path)]
        subprocess.run([*command, "--jobs", str(asked.jobs)], check=True)


if __name__ == "__main__":
    main()
