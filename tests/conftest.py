"""What holds for all tests."""

from hypothesis import settings

# How long an example takes says something of the machine, and of what else runs there.
settings.register_profile("carteiro", deadline=None)
settings.load_profile("carteiro")
