"""Workers killed, stopped and replaced at random moments under load, while Redis and the broker restart."""

from pathlib import Path

from end_to_end.tickets.storm import faults_after


def test_storm_loses_nothing(tmp_path: Path) -> None:
    """Each ticket is done or dead, with one execution more for each hit at most."""
    assert not faults_after(tmp_path, seed=1, blows=12)
