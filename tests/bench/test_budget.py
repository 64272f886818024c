"""The cost of a message stays within `bench/budget.toml`: no feature makes the path more expensive by accident."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TypeAlias

import pytest

from end_to_end.crash.stores import STORES, a_place

BENCH = Path(__file__).parents[2] / "bench"
TOLERANCE = 1.1  # lists end a little earlier or later in each run
ONE_MORE = 2.0  # statements, where there are few
RUNS = 4

Counts: TypeAlias = dict[str, dict[str, float]]


@pytest.mark.parametrize("kind", ["task", "email"])
@pytest.mark.parametrize(
    "store",
    [pytest.param(each, marks=[] if each == "sqlite" else pytest.mark.servers) for each in STORES],
)
def test_message_stays_within_its_budget(store: str, kind: str, tmp_path: Path) -> None:
    """The best of a few runs: on a busy machine a claim and a settle miss the same commit now and then."""
    budget = tomllib.loads((BENCH / "budget.toml").read_text())[store][kind]
    for number in range(RUNS):
        found = _counted(store, kind, tmp_path / str(number))
        too_much = _too_much(found, budget)
        if not too_much:
            break
    assert not too_much
    assert {phase: set(counts) for phase, counts in budget.items()} == {
        phase: set(counts) for phase, counts in found.items()
    }


def _counted(store: str, kind: str, folder: Path) -> Counts:
    """In a process of its own, as other tests leave objects and settings behind."""
    folder.mkdir()
    with a_place(store, folder) as place:
        command = [sys.executable, "budget.py", "--store", place.store, "--kind", kind]
        command += ["--queue", place.queue] if place.queue else []
        ran = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: Counts = json.loads(ran.stdout)
    return found


def _too_much(found: Counts, budget: Counts) -> dict[str, str]:
    return {
        f"{phase}.{count}": f"{found[phase][count]} of {limit}"
        for phase, limits in budget.items()
        for count, limit in limits.items()
        if found[phase][count] > limit * TOLERANCE + ONE_MORE
    }


def test_ticket_stays_within_its_budget() -> None:
    """None failing, and one in a hundred always failing."""
    command = [sys.executable, "ticket_budget.py"]
    ran = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr

    budget = tomllib.loads((BENCH / "budget.toml").read_text())["tickets"]
    found = json.loads(ran.stdout)
    assert found.keys() == budget.keys()
    assert not {name: each for name, each in found.items() if each > budget[name] * TOLERANCE}
