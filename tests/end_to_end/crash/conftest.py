"""The stores that processes are killed on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from carteiro.stores.postgres import migrate
from end_to_end.crash.places import Place, a_file
from support.shared_servers import shared_postgres


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty store of each kind, and a folder."""
    if request.param == "sqlite":
        yield a_file(tmp_path)
        return
    with shared_postgres().a_database(migrate) as url:
        yield Place(url, str(tmp_path))
