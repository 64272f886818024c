"""The cost of a message stays within `bench/budget.toml`: no feature makes the path more expensive by accident."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from end_to_end.crash.stores import STORES, a_place

BENCH = Path(__file__).parents[2] / "bench"
TOLERANCE = 1.1  # lists end a little earlier or later in each run
ONE_MORE = 2.0  # statements, where there are few


@pytest.mark.parametrize("kind", ["task", "email"])
@pytest.mark.parametrize("store", STORES)
def test_message_stays_within_its_budget(store: str, kind: str, tmp_path: Path) -> None:
    """In a process of its own, as other tests leave objects and settings behind."""
    with a_place(store, tmp_path) as place:
        command = [sys.executable, "budget.py", "--store", place.store, "--kind", kind]
        command += ["--queue", place.queue] if place.queue else []
        ran = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr

    budget = tomllib.loads((BENCH / "budget.toml").read_text())[store][kind]
    found = json.loads(ran.stdout)
    too_much = {
        f"{phase}.{count}": f"{found[phase][count]} of {limit}"
        for phase, limits in budget.items()
        for count, limit in limits.items()
        if found[phase][count] > limit * TOLERANCE + ONE_MORE
    }
    assert not too_much
    assert {phase: set(counts) for phase, counts in budget.items()} == {
        phase: set(counts) for phase, counts in found.items()
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
