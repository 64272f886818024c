"""CPU time of a process, read from outside, and its end."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE_S = 60.0


def cpu_seconds(pid: int) -> float:
    """User and system time so far, of all threads and of all children, those included that have ended."""
    user, system, *of_ended = _times(pid)
    return (user + system + sum(of_ended) + _of_children(pid)) / _TICKS


def ended(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Wait for the end of a stopping process; it is killed if it does not end, which is an error."""
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def _of_children(pid: int) -> int:
    ticks = 0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        with suppress(
            FileNotFoundError, ProcessLookupError
        ):  # the next look finds it at its parent
            ticks += sum(_times(int(child))[:2])
    return ticks


def _times(pid: int) -> list[int]:
    """In ticks: user and system time of its own, and of the children that it has buried."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return [int(each) for each in fields[11:15]]
