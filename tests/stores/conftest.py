"""Fixtures for tests of stores."""

from collections.abc import Iterator

import pytest

from support.shared_servers import a_migrated_database


@pytest.fixture
def url() -> Iterator[str]:
    """An empty database with the schema."""
    with a_migrated_database() as made:
        yield made
