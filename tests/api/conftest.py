"""A Carteiro app behind the API."""

from collections.abc import AsyncIterator

import pytest

from carteiro.app import Carteiro
from support.http import opened


@pytest.fixture
async def post() -> AsyncIterator[Carteiro]:
    async with opened("memory://") as office:
        yield office
