"""One document for each ticket, whatever it says and however often it dies."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from carteiro.tickets.archive.document import (
    MOST_OCCURRENCES,
    OURS,
    Document,
    documents,
    is_noted,
    restored,
)
from carteiro.tickets.dead_letters.envelope import DeadTicket
from support.dead_tickets import DIED_MS, a_dead_ticket, a_deep_ticket, a_ticket

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)


def _archived(*deaths: DeadTicket) -> Document:
    document: Document = {}
    for each in deaths:
        document = next(documents(document, each, now=NOW))
    return document


def test_a_ticket_stands_in_its_document_as_it_stood_on_its_topic() -> None:
    """The ticket's fields are where they were, with the metadata of its death next to them."""
    ticket = a_ticket(parameters={"repository": "x", "steps": [1, 2.5, None]})

    document = _archived(a_dead_ticket(ticket))

    assert {name: document[name] for name in ticket} == ticket
    assert document["dlq_metadata"] == {
        "original_error": "no route to host",
        "error_type": "ConnectionError",
        "retry_count": 3,
        "last_failure_timestamp": DIED_MS,
        "dlq_published_at": DIED_MS,
    }
    assert document["processed_at"] == NOW


def test_when_it_died_is_a_date_too() -> None:
    """A number is not found by a date."""
    document = _archived(a_dead_ticket())

    assert document[OURS]["published_at"] == datetime.fromtimestamp(DIED_MS / 1000, UTC)


def test_a_ticket_that_dies_again_has_one_document_with_both_deaths() -> None:
    """The newest is on top, and every one of them is listed."""
    again = a_dead_ticket(a_ticket(priority=9), at=7, error="out of memory", redrives=1)

    document = _archived(a_dead_ticket(), again)

    found = restored(document)
    assert (found.deaths, found.redrives, found.error) == (2, 1, "out of memory")
    assert [each["source"] for each in found.occurrences] == [
        "execution.tickets|0|0",
        "execution.tickets|0|7",
    ]
    assert document["priority"] == 9


def test_fields_that_are_gone_are_gone() -> None:
    """A document is the ticket of the last death, not a mixture of all."""
    document = _archived(a_dead_ticket(a_ticket(old=1)), a_dead_ticket(at=1))

    assert "old" not in document


def test_a_death_that_is_read_twice_is_known() -> None:
    """By the place where its ticket was: a second letter about it has another place itself."""
    document = _archived(a_dead_ticket(at=3))

    assert is_noted(document, a_dead_ticket(at=3, error="said otherwise"))
    assert not is_noted(document, a_dead_ticket(at=4))


def test_the_list_of_deaths_is_bounded_and_their_number_is_not() -> None:
    """A document must not grow until no server takes it."""
    deaths = [a_dead_ticket(at=each) for each in range(MOST_OCCURRENCES + 3)]

    found = restored(_archived(*deaths))

    assert (len(found.occurrences), found.deaths) == (MOST_OCCURRENCES, MOST_OCCURRENCES + 3)
    assert found.occurrences[-1]["dlq_id"] == deaths[-1].dlq_id


@pytest.mark.parametrize(
    ("before", "after"),
    [("redriven", "dead"), ("redriving", "dead"), ("quarantined", "quarantined")],
)
def test_ticket_that_dies_again_stays_in_quarantine(before: str, after: str) -> None:
    """A quarantined ticket is released by people alone."""
    document = _archived(a_dead_ticket())
    document[OURS]["state"] = before

    assert next(documents(document, a_dead_ticket(at=1), now=NOW))[OURS]["state"] == after


@pytest.mark.parametrize("name", ["_id", "archive", "processed_at"])
def test_a_ticket_with_a_field_of_ours_is_kept_as_bytes(name: str) -> None:
    """Neither hides the other."""
    ticket = a_ticket(**{name: "its own"})

    found = restored(_archived(a_dead_ticket(ticket)))

    assert found.fields is None
    assert orjson.loads(found.raw or b"") == ticket


def test_record_that_is_not_a_ticket_is_stored_as_bytes() -> None:
    """So that it can be sent again as it was."""
    found = restored(_archived(a_dead_ticket(b"\xff\xfe not JSON", reason="undecodable")))

    assert (found.fields, found.raw) == (None, b"\xff\xfe not JSON")
    assert (found.id, found.reason) == ("poison:execution.tickets:0:0", "undecodable")


def test_a_ticket_that_cannot_be_written_again_is_kept_as_it_came() -> None:
    """A deeply nested object can be read and not be written."""
    found = restored(_archived(a_dead_ticket(a_deep_ticket())))

    assert (found.id, found.fields, found.raw) == ("T-1", None, a_deep_ticket())


@pytest.mark.parametrize("number", [b"123456789012345678901234", b"0.12345678901234567890"])
def test_numbers_that_fields_cannot_hold_are_stored_separately(number: bytes) -> None:
    """People look for fields; a redriven ticket must not carry another number."""
    body = b'{"ticket_id": "T-1", "task_type": "BUILD", "n": %b}' % number

    found = restored(_archived(a_dead_ticket(body)))

    assert found.fields is not None
    assert found.fields["n"] == float(number)
    assert number in (found.raw or b"")
    assert b"dlq_metadata" not in (found.raw or b"")


def test_fields_that_say_all_are_enough() -> None:
    """A payload is not kept twice."""
    assert restored(_archived(a_dead_ticket(a_ticket(rate=0.1, big=2**63 - 1)))).raw is None


def test_invalid_time_stops_nothing() -> None:
    """Others may write any time on their records."""
    dead = a_dead_ticket()
    odd = replace(dead, metadata={**dead.metadata, "dlq_published_at": 2**63 - 1})

    assert restored(_archived(odd)).published_at == NOW


def test_smallest_form_names_the_missing_parts() -> None:
    """Size and digest, and where it was: somebody may still find it there."""
    *_, poorest = documents({}, a_dead_ticket(), now=NOW)

    found = restored(poorest)

    assert (found.fields, found.raw, found.source) == (None, None, "execution.tickets|0|0")
    body = orjson.dumps(a_ticket())
    assert poorest[OURS]["payload_bytes"] == len(body)
    assert len(poorest[OURS]["payload_sha256"]) == 64


@pytest.mark.parametrize(
    "document",
    [
        {"ticket_id": "T-1", "task_type": "BUILD", "processed_at": NOW, "a": 1},
        {"ticket_id": "T-1", "archive": "something else", "dlq_metadata": [1], "processed_at": "x"},
        {"ticket_id": None},
        {},
    ],
)
def test_documents_of_other_programs_can_be_read(document: dict[str, Any]) -> None:
    """A collection that was there before is taken over as it is."""
    found = restored(document)

    assert (found.state, found.version, found.deaths) == ("dead", None, 1)


def test_headers_are_stored_without_those_about_the_death() -> None:
    """Its trace goes on when it is sent again."""
    found = restored(_archived(a_dead_ticket(redrives=2)))

    assert found.headers == (("trace", b"abc"),)
    assert found.redrives == 2
    assert found.published_at - NOW < timedelta(0)
