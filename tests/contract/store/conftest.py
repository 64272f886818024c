"""The model keeps the promises of the path, too: stores are compared with it."""

import pytest

from support.set_ups import MODEL, SET_UPS, SetUp


@pytest.fixture(scope="session", params=[MODEL, *SET_UPS], ids=lambda each: each.name)
def set_up(request: pytest.FixtureRequest) -> SetUp:
    """The model and each store in turn."""
    chosen: SetUp = request.param
    return chosen
