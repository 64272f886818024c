"""Rules for all tests."""

import gc

from hypothesis import settings

# The duration of an example depends on the machine and its load.
settings.register_profile("carteiro", deadline=None)
settings.load_profile("carteiro")


def pytest_collection_finish() -> None:
    """Ten thousand tests stay in memory until the end: the garbage collector need not visit them each time."""
    gc.collect()
    gc.freeze()
