"""Fixtures for tests of stores."""

from collections.abc import Iterator

import pytest

from carteiro.stores.postgres import migrate
from support.shared_servers import shared_postgres


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database with the schema."""
    with shared_postgres().a_database(migrate) as made:
        yield made
