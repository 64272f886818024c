"""What holds for all tests."""

import gc

from hypothesis import settings

# How long an example takes says something of the machine, and of what else runs there.
settings.register_profile("carteiro", deadline=None)
settings.load_profile("carteiro")


def pytest_collection_finish() -> None:
    """Ten thousand tests stay in memory until the end: who collects garbage need not look through them each time."""
    gc.collect()
    gc.freeze()
