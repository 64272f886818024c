"""A separate lane for each test, on servers that stay up."""

from pathlib import Path

import pytest

from end_to_end.tickets.lane import Lane
from support.shared_servers import shared_kafka, shared_redis
from support.ticket_topic import TicketTopic


@pytest.fixture
def lane(tmp_path: Path) -> Lane:
    return Lane(TicketTopic(shared_kafka()), shared_redis().url, tmp_path)
