"""The command line in a child process."""

import os
from pathlib import Path

import carteiro

_SOURCE = Path(carteiro.__file__).parents[1]


def environment_of_a_command(**settings: str) -> dict[str, str]:
    """The code under test, and only these settings: not those of the user who runs the tests."""
    inherited = {key: own for key, own in os.environ.items() if not key.startswith("CARTEIRO_")}
    return inherited | {"PYTHONPATH": str(_SOURCE)} | settings
