"""The MongoDB-protocol server of the tests supports what the archive of dead tickets needs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo.collection import Collection
from pymongo.errors import DuplicateKeyError

from support.mongo_server import MongoServer, a_mongo, forget_sockets

AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


@pytest.fixture
def own() -> Iterator[MongoServer]:
    """A server that a test may stop and kill."""
    with a_mongo() as server:
        yield server
    forget_sockets()


@pytest.fixture
def tickets(mongo: MongoServer) -> Iterator[Collection[dict[str, Any]]]:
    """An empty collection, with one document for each ticket."""
    with mongo.a_database() as name, mongo.client() as client:
        yield with_unique_tickets(client[name].tickets)


def with_unique_tickets(collection: Collection[dict[str, Any]]) -> Collection[dict[str, Any]]:
    """A ticket has one document."""
    collection.create_index("ticket_id", unique=True)
    return collection


def archive(tickets: Collection[dict[str, Any]], occurrence: str) -> None:
    """Archive a dead ticket, or its next death."""
    change = {
        "$set": {"latest": occurrence},
        "$setOnInsert": {"first": occurrence, "at": AT},
        "$addToSet": {"occurrences": {"id": occurrence}},
    }
    tickets.update_one({"ticket_id": "T-1"}, change, upsert=True)


def test_second_document_of_a_ticket_is_refused(tickets: Collection[dict[str, Any]]) -> None:
    """The index is unique."""
    tickets.insert_one({"ticket_id": "T-1"})

    with pytest.raises(DuplicateKeyError):
        tickets.insert_one({"ticket_id": "T-1"})


def test_upsert_makes_one_document(tickets: Collection[dict[str, Any]]) -> None:
    """Also when repeated; each occurrence is kept once."""
    for occurrence in ["a", "b", "b"]:
        archive(tickets, occurrence)

    [kept] = tickets.find({}, {"_id": False})
    assert kept == {
        "ticket_id": "T-1",
        "latest": "b",
        "first": "a",
        "at": AT,
        "occurrences": [{"id": "a"}, {"id": "b"}],
    }


def test_documents_before_a_time_are_deleted(tickets: Collection[dict[str, Any]]) -> None:
    """A purge spares a document that is exactly as old."""
    tickets.insert_many(
        [{"ticket_id": f"T-{hour}", "at": AT.replace(hour=hour)} for hour in (11, 12)]
    )

    removed = tickets.delete_many({"at": {"$lt": AT.replace(hour=12)}}).deleted_count

    assert (removed, [each["ticket_id"] for each in tickets.find()]) == (1, ["T-12"])


def test_database_is_gone_after_its_test(mongo: MongoServer) -> None:
    with mongo.a_database() as name, mongo.client() as client:
        client[name].tickets.insert_one({})
        names = client.list_database_names()

    with mongo.client() as client:
        assert name in names
        assert name not in client.list_database_names()


@pytest.mark.parametrize("end", [MongoServer.stop, MongoServer.kill])
def test_acknowledged_documents_survive_a_restart(
    own: MongoServer, end: Callable[[MongoServer], None]
) -> None:
    """Documents and indexes; clients have to reconnect."""
    with own.client() as client:
        archive(with_unique_tickets(client.kept.tickets), "a")

    end(own)
    is_gone = not own.is_ready()
    own.start()

    with own.client() as client:
        archive(client.kept.tickets, "b")
        assert [each["first"] for each in client.kept.tickets.find()] == ["a"]
        with pytest.raises(DuplicateKeyError):
            client.kept.tickets.insert_one({"ticket_id": "T-1"})
    assert is_gone
