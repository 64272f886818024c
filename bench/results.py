"""Keep what a run prints in `bench/results/`, under its date, with the machine and the versions."""

import contextlib
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

from figures import HERE

RESULTS = HERE / "results"
_PROGRAMS = (
    ["postgres", "--version"],
    ["redis-server", "--version"],
    ["node", "--version"],
)
_BESIDE_POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class _Both:
    """Write to a file, too."""

    def __init__(self, *outputs: TextIO) -> None:
        self._outputs = outputs

    def write(self, text: str) -> int:
        """Write to all of them."""
        for each in self._outputs:
            each.write(text)
            each.flush()
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""


@contextlib.contextmanager
def kept(arguments: Sequence[str]) -> Iterator[None]:
    """Keep what the block prints; the file is named after the day and what was asked for."""
    now = datetime.now(UTC)
    named = "-".join(each.lstrip("-") for each in arguments if each != "--save") or "all"
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y-%m-%d}-{named.replace(' ', '-')}.md"
    with path.open("w", encoding="utf-8") as file:
        file.write(f"# {now:%Y-%m-%d %H:%M} UTC: {' '.join(arguments) or 'everything'}\n\n")
        file.write("".join(f"- {line}\n" for line in _machine()))
        with contextlib.redirect_stdout(_Both(sys.stdout, file)):
            yield


def _machine() -> Iterator[str]:
    yield f"{os.cpu_count()} cores, {_processor()}; {platform.system()}"
    yield f"load average before: {', '.join(f'{each:.1f}' for each in os.getloadavg())}"
    yield f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    for program in _PROGRAMS:
        if found := _said_by(program):
            yield found
    yield ", ".join(sorted({*_peers()}))


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(": ")[2]
    return platform.machine()


def _said_by(command: Sequence[str]) -> str | None:
    places = os.pathsep.join([*map(str, reversed(_BESIDE_POSTGRES)), os.environ.get("PATH", "")])
    program = shutil.which(command[0], path=places)
    if program is None:
        return None
    ran = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    said = ran.stdout.strip()
    return said if said.startswith(("postgres", "Redis")) else f"{command[0]} {said}"


def _peers() -> Iterator[str]:
    for pinned in sorted((HERE / "peers").glob("*.txt")):
        yield from (line for line in pinned.read_text("utf-8").split() if "==" in line)
    for pinned in sorted((HERE / "peers").glob("*/package.json")):
        wanted = json.loads(pinned.read_text("utf-8"))["dependencies"]
        yield from (f"{name}=={of}" for name, of in wanted.items())
    bench = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))
    for each in bench["project"]["optional-dependencies"]["bench"]:
        name = each.partition("=")[0].partition(">")[0].partition("[")[0].strip()
        yield f"{name}=={version(name)}"
