"""Several worker processes on one store, killed -9 and stopped at random moments under load."""

import pytest

from end_to_end.crash.cases import cases
from end_to_end.crash.children import bring_to_rest
from end_to_end.crash.law import broken, lives
from end_to_end.crash.places import Place
from end_to_end.crash.storm import Weather, storm


@pytest.mark.parametrize(
    ("place", "seed"),
    cases(sqlite=[1, 2], postgres=[2], redis_sqlite=[3]),
    indirect=["place"],
)
def test_random_kills_under_load_lose_nothing(place: Place, seed: int) -> None:
    """After any deaths, the remaining and the new workers end every message once."""
    accepted = storm(place, seed, Weather(workers=3, blows=12))
    bring_to_rest(place)

    assert broken(place, accepted) == []
    assert {life.id for life in lives(place)} == set(accepted)
