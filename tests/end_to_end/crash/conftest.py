"""The stores that processes are killed on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.crash.places import Place
from end_to_end.crash.stores import a_place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty store of each kind, and a folder."""
    with a_place(request.param, tmp_path) as made:
        yield made
