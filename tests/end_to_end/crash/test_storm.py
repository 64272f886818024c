"""Several worker processes on one file, killed -9 and stopped at random moments under load."""

from pathlib import Path

import pytest

from end_to_end.crash.children import bring_to_rest
from end_to_end.crash.law import broken, lives
from end_to_end.crash.storm import Weather, storm


@pytest.mark.parametrize("seed", [1, 2])
def test_random_kills_under_load_lose_nothing(tmp_path: Path, seed: int) -> None:
    """Whichever worker dies whenever, the others and those that come after end everything, once."""
    file = tmp_path / "post.db"

    accepted = storm(file, seed, Weather(workers=3, blows=12))
    bring_to_rest(file)

    assert broken(file, accepted) == []
    assert {life.id for life in lives(file)} == set(accepted)
