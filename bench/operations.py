"""Alerts, roll-ups and failure groups: their share of a core when idle and at full load, and the time until a notice.

After them the time of redrives.
"""

from collections.abc import Mapping
from typing import Any

import redrives
from figures import Missing, lines_of, print_table, say
from servers import postgres

# How often each is done, in seconds.
_EVERY = {"evaluate": 15, "fold, nothing": 10, "look": 60}
_Lines = Mapping[str, Mapping[str, Any]]


def measure(tenants: int = 10_000, letters: int = 100_000) -> None:
    """Print all tables."""
    say(f"operations, {tenants:,} tenants")
    _print("SQLite", tenants, {})
    try:
        with postgres() as server, server.a_database() as environ:
            _print("Postgres", tenants, environ)
    except Missing as missing:
        print(missing)
    redrives.measure(letters)


def _print(store: str, tenants: int, environ: Mapping[str, str]) -> None:
    told = lines_of("ours.operations", "--tenants", tenants, environ=environ)
    lines = {each["name"]: each for each in told}
    print(
        f"\n{store}: {tenants:,} tenants and 1,000 failure groups; 1,000 tenants in each minute\n"
    )
    print_table(["what", "CPU ms each", "ms of a core per second"], _idle(lines))
    print(f"\n{store}, full load, every third message fails: the CPU time of adding up\n")
    loads = [
        (name, each, lines[f"added up, {name}"])
        for name, each in lines.items()
        if name.startswith("load")
    ]
    rows = [
        [
            f"{name}, {each['count']:,} messages",
            f"{each['per_second']:,}",
            f"{1e6 * _cpu(fold) / each['count']:.1f}",
            f"{_cpu(fold) / each['seconds']:.1%}",
        ]
        for name, each, fold in loads
    ]
    print_table(["what", "per second", "us a message", "of a core"], rows)
    print()
    waits = [[name, f"{each['seconds']:.1f}"] for name, each in lines.items() if "until" in name]
    print_table(["from the first message that fails", "seconds"], waits)


def _idle(lines: _Lines) -> list[list[str]]:
    rows, together = [], 0.0
    for start, every in _EVERY.items():
        for name, each in lines.items():
            if name.startswith(start):
                ms = 1e3 * _cpu(each) / each["count"]
                together += ms / every if "fails" not in name else 0
                rows.append([name, f"{ms:.2f}", f"{ms / every:.3f}"])
    return [*rows, ["idle, together", "", f"{together:.3f}"]]


def _cpu(line: Mapping[str, Any]) -> float:
    """Seconds of CPU, of the server too."""
    used: float = line["cpu_seconds"] + line["server_cpu_seconds"]
    return used


if __name__ == "__main__":
    measure()
