"""A post office behind the API, on each store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carteiro.app import Carteiro
from support.http import opened


@pytest.fixture(params=["memory", "sqlite"])
async def post(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Carteiro]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/carteiro.db"
    async with opened(url) as office:
        yield office
