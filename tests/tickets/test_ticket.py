"""Reading a record: a ticket, or a reason why there is none; never an error, whatever the bytes are."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.tickets.ticket import (
    LONGEST_ID,
    NO_TYPE,
    Record,
    Ticket,
    Unreadable,
    is_fit,
    read,
    read_all,
)


def a_record(body: bytes | None) -> Record:
    """A record with this value."""
    return Record("execution.tickets", 2, 7, b"key", body)


def test_ticket_has_the_fields_of_its_record() -> None:
    """All fields, and the record itself."""
    fields = {"ticket_id": "t-1", "task_type": "BUILD", "parameters": {"a": [1, None]}}
    record = a_record(orjson.dumps(fields))
    found = read(record)
    assert found == Ticket("t-1", "BUILD", record)
    assert isinstance(found, Ticket)
    assert found.fields == fields


def test_a_large_ticket_is_kept_as_bytes_until_it_is_used() -> None:
    """As objects it may take thirty times its room, and a window of them waits."""
    fields = {"ticket_id": "t-1", "task_type": "BUILD", "parameters": [[] for _ in range(1000)]}
    found = read(a_record(orjson.dumps(fields)))
    assert isinstance(found, Ticket)
    assert found._fields is None
    assert found.fields == fields


def test_changed_payload_is_restored_for_the_next_attempt() -> None:
    """A handler that fails may have changed them: the next attempt begins with what was sent."""
    found = read(a_record(b'{"ticket_id":"t-1","task_type":"BUILD","steps":[1]}'))
    assert isinstance(found, Ticket)
    found.fields["steps"].append(2)
    found.put_away()
    assert found.fields["steps"] == [1]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "the record has no value"),
        (b"", "the record is empty"),
        (b"{", "the value is not JSON"),
        (b"\xff\xfe", "the value is not JSON"),
        (b"[1]", "the value is not an object of JSON"),
        (b'"text"', "the value is not an object of JSON"),
        (b'{"task_type":"BUILD"}', "ticket_id is missing"),
        (b'{"ticket_id":7,"task_type":"BUILD"}', "ticket_id is not a text"),
        (b'{"ticket_id":"","task_type":"BUILD"}', "ticket_id is empty"),
        (b'{"ticket_id":"a b","task_type":"BUILD"}', "ticket_id is empty, longer"),
    ],
)
def test_ticket_without_an_id_gets_one_from_its_position(body: bytes | None, why: str) -> None:
    """So that two of them are two documents, and none is a key of Redis that it chose itself."""
    found = read(a_record(body))
    assert isinstance(found, Unreadable)
    assert found.id == "poison:execution.tickets:2:7"
    assert found.why.startswith(why)


def test_a_ticket_without_a_type_keeps_its_name() -> None:
    """People look for it by that."""
    found = read(a_record(b'{"ticket_id":"t-1"}'))
    assert found == Unreadable(
        "t-1", NO_TYPE, "task_type is missing", a_record(b'{"ticket_id":"t-1"}')
    )


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("t-1", True),
        ("Ünïcode", True),
        ("x" * LONGEST_ID, True),
        ("x" * (LONGEST_ID + 1), False),
        ("a b", False),
        ("a\tb", False),
        ("a\x00b", False),
        ("a\x7fb", False),
        ("é\u2028", False),
        ("\ud800", False),
        (b"bytes", False),
        (None, False),
    ],
)
def test_which_names_fit_everywhere(name: object, fits: bool) -> None:
    """In a key of Redis, a header, a document and a label."""
    assert is_fit(name) == fits


@given(st.binary() | st.none())
def test_no_bytes_are_too_strange(body: bytes | None) -> None:
    """Something comes of all of them."""
    found = read(a_record(body))
    assert is_fit(found.id)


_PLAIN_BODY = b'{"ticket_id":"t-1","task_type":"BUILD"}'


@pytest.mark.parametrize(
    "odd",
    [
        None,
        b"",
        b"{",
        b"[1]",
        b'{"ticket_id":"t 2","task_type":"BUILD"}',
        b'{"ticket_id":"","task_type":"BUILD"}',
        b'{"ticket_id":7,"task_type":"BUILD"}',
        b'{"ticket_id":"t-2","task_type":[]}',
        b'{"ticket_id":"t-2","task_type":"B U"}',
        b'{"ticket_id":"%s","task_type":"BUILD"}' % (b"x" * 257),
        '{"ticket_id":"ü","task_type":"BUILD"}'.encode(),
        b'{"ticket_id":"t-2","task_type":"BUILD","text":"%s"}' % (b"x" * 1000),
    ],
    ids=str,
)
def test_a_list_is_read_as_its_records_are(odd: bytes | None) -> None:
    """One odd record changes nothing of the others."""
    bodies = (_PLAIN_BODY, odd, _PLAIN_BODY)
    records = [Record("topic", 0, at, b"k", body) for at, body in enumerate(bodies)]

    assert [*read_all(records)] == [read(each) for each in records]
