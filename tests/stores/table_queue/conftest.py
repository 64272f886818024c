"""A database with each of its possible owners, and an application that uses it."""

from collections.abc import Iterator

import pytest

from support.postgres_server import OWNERS
from support.shared_servers import a_migrated_database
from support.table_queue import Application, an_application


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with only the schema, with any owner."""
    with a_migrated_database(request.param) as made:
        yield made


@pytest.fixture
def app(url: str) -> Iterator[Application]:
    """An application with autocommit."""
    with an_application(url) as made:
        yield made
