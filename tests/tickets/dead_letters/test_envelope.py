"""A dead ticket becomes a record of the dead letter topic, whatever it is, and can be read again from each form."""

import base64
import hashlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from carteiro.tickets.dead_letters.envelope import (
    LIMIT,
    SHORT_ERROR,
    TOPIC_LIMIT,
    Envelope,
    Missing,
    dlq_id_of,
    forms,
    opened,
    size,
)
from carteiro.tickets.deaths import Death
from carteiro.tickets.ticket import Record, Ticket
from support.deaths import (
    NOW_MS,
    a_death,
    a_record,
    a_ticket_record,
    as_read,
    envelope,
    random_bytes,
    random_text,
)

SEEDS_NAMES = {
    "original_error",
    "error_type",
    "retry_count",
    "last_failure_timestamp",
    "dlq_published_at",
}


def buried(death: Death, *, limit: int = LIMIT) -> Envelope:
    """The dead letter, written a moment after the death."""
    return envelope(death, published_at_ms=NOW_MS + 2, group="worker-agents", limit=limit)


def headers_of(made: Envelope) -> dict[str, bytes | None]:
    """By name, each once."""
    named = dict(made.headers)
    assert len(named) == len(made.headers)
    return named


def all_forms(death: Death) -> list[Envelope]:
    """From the fullest to the shortest."""
    return list(forms(death, published_at_ms=NOW_MS + 2, group="worker-agents"))


# --- what is written --------------------------------------------------------------------------


def test_dead_letter_is_the_ticket_with_metadata_on_its_death() -> None:
    """Its own fields, and `dlq_metadata` with times in milliseconds since 1970."""
    made = buried(a_death(a_ticket_record(repo="carteiro", steps=[1, 2])))

    assert orjson.loads(made.value) == {
        "ticket_id": "ticket-1",
        "task_type": "BUILD",
        "repo": "carteiro",
        "steps": [1, 2],
        "dlq_metadata": {
            "original_error": "no such host",
            "error_type": "BuildFailed",
            "retry_count": 3,
            "last_failure_timestamp": NOW_MS,
            "dlq_published_at": NOW_MS + 2,
        },
    }
    assert made.key == b"ticket-1"


def test_the_fields_of_a_ticket_stay_as_they_came() -> None:
    """A number may have more digits than anything in between could hold."""
    body = (
        b' {"ticket_id": "a", "task_type": "B", "n": 123456789012345678901234567890, "x": 1.10}\n'
    )

    made = buried(a_death(a_record(body)))

    assert made.value.startswith(body.rstrip()[:-1] + b',"dlq_metadata":{')
    assert orjson.loads(made.value)["dlq_metadata"]["retry_count"] == 3


def test_an_earlier_death_is_replaced() -> None:
    """Somebody put a dead letter back as it was: its metadata is not the ticket's."""
    made = buried(a_death(a_ticket_record(dlq_metadata={"retry_count": 99}, repo="x")))

    assert made.value.count(b"dlq_metadata") == 1
    assert orjson.loads(made.value)["dlq_metadata"]["retry_count"] == 3
    assert orjson.loads(made.value)["repo"] == "x"


def test_headers_say_where_it_came_from_in_the_words_of_others() -> None:
    """Tools for share groups and for Spring find what they look for."""
    headers = headers_of(buried(a_death()))

    assert headers["dlq_id"] == hashlib.sha256(b"execution.tickets|2|41").hexdigest().encode()
    assert {name: each for name, each in headers.items() if name.startswith("__dlq.errors.")} == {
        "__dlq.errors.topic": b"execution.tickets",
        "__dlq.errors.partition": b"2",
        "__dlq.errors.offset": b"41",
        "__dlq.errors.group": b"worker-agents",
        "__dlq.errors.delivery.count": b"3",
        "__dlq.errors.message": b"no such host",
    }
    assert {name: each for name, each in headers.items() if name.startswith("kafka_dlt-")} == {
        "kafka_dlt-original-topic": b"execution.tickets",
        "kafka_dlt-original-partition": (2).to_bytes(4, "big"),
        "kafka_dlt-original-offset": (41).to_bytes(8, "big"),
        "kafka_dlt-original-timestamp": (NOW_MS - 60_000).to_bytes(8, "big"),
        "kafka_dlt-original-consumer-group": b"worker-agents",
        "kafka_dlt-exception-fqcn": b"BuildFailed",
        "kafka_dlt-exception-message": b"no such host",
    }


def test_headers_of_the_ticket_are_carried_on() -> None:
    """A trace goes on through the dead letter; a header without a value is none with an empty one."""
    own = (("traceparent", b"00-1"), ("empty", b""), ("null", None))

    made = buried(a_death(a_record(a_ticket_record().body, headers=own)))

    assert made.headers[-3:] == own
    assert size(made) > size(buried(a_death()))


def test_headers_of_a_redriven_ticket_are_not_piled_up() -> None:
    """Each death has the same headers; only the count of redrives is the ticket's own."""
    made = buried(a_death())
    for hop in range(1, 6):
        headers = tuple(each for each in made.headers if each[0] != "carteiro_redrives")
        headers = (*headers, ("carteiro_redrives", str(hop).encode()))
        made = buried(a_death(a_record(a_ticket_record().body, headers=headers)))

        assert {**headers_of(made), "carteiro_redrives": b"0"} == headers_of(buried(a_death()))
        assert opened(as_read(made)).redrives == hop


@pytest.mark.parametrize("body", [None, b"", b"\xff\x00garbage", b"[1]", b'{"task_type": "BUILD"}'])
def test_record_that_is_not_a_ticket_is_stored_byte_by_byte(body: bytes | None) -> None:
    """Garbage, a null, no id: it never fails, and the bytes can be had again."""
    death = a_death(a_record(body), reason="undecodable", error_type="Undecodable", failures=0)

    made = buried(death)
    dead = opened(as_read(made))

    metadata = orjson.loads(made.value)["dlq_metadata"]
    assert set(metadata) > SEEDS_NAMES
    assert metadata["payload_base64"] == (None if body is None else base64.b64encode(body).decode())
    assert (dead.id, dead.fields, dead.raw) == ("poison:execution.tickets:2:41", None, body)
    assert (dead.reason, dead.source) == ("undecodable", "execution.tickets|2|41")


def test_two_records_without_an_id_have_different_ones() -> None:
    """Or the second would be taken for the first."""
    ids = {buried(a_death(a_record(b"{}", offset=offset))).key for offset in (1, 2)}

    assert len(ids) == 2


def test_secrets_do_not_leave_with_the_error() -> None:
    """Not in the value, not in a header."""
    error = "GET https://me:hunter22@api.example/ Authorization: Bearer abcdef123456"

    made = buried(a_death(error=error, error_type="password=hunter22"))

    everything = made.value + b"".join(each or b"" for _, each in made.headers)
    assert b"hunter22" not in everything
    assert b"abcdef123456" not in everything


def test_an_error_of_a_megabyte_is_cut() -> None:
    """The ticket is what counts."""
    made = buried(a_death(error="é" * 1_000_000))

    assert size(made) < 30_000
    assert orjson.loads(made.value)["dlq_metadata"]["original_error"].startswith("éé")


def test_an_error_that_no_encoding_takes_is_written_all_the_same() -> None:
    """Half a surrogate pair, control characters, no text at all."""
    for error in ("\ud800 half", "\x00\x1b[31m", ""):
        assert opened(as_read(buried(a_death(error=error, error_type=error)))).id == "ticket-1"


# --- the ladder -------------------------------------------------------------------------------


def test_forms_go_from_the_fullest_to_the_shortest() -> None:
    """Each is smaller, until only the place is left."""
    record = a_record(
        a_ticket_record(blob=random_text(50_000)).body, headers=(("trace", b"x" * 10_000),)
    )

    made = all_forms(a_death(record, error="e" * 100_000))

    sizes = [size(each) for each in made]
    assert sizes == sorted(sizes, reverse=True)
    assert len(made) == 5
    assert sizes[-1] < 20_000


def test_a_large_error_goes_before_anything_of_the_ticket() -> None:
    """Four KiB of it say what happened."""
    record = a_ticket_record(blob=random_text(LIMIT - 10_000))

    made = buried(a_death(record, error="e" * 100_000))

    assert SHORT_ERROR < size(made) - len(record.body or b"") < 10_000
    assert opened(as_read(made)).fields == orjson.loads(record.body or b"")


def test_large_headers_go_before_the_ticket() -> None:
    """They are kept nowhere else, but the work is in the ticket."""
    record = a_record(a_ticket_record().body, headers=(("huge", random_bytes(3_000_000)),))

    made = buried(a_death(record))

    assert "huge" not in headers_of(made)
    assert opened(as_read(made)).fields == {"ticket_id": "ticket-1", "task_type": "BUILD"}


def test_bytes_that_do_not_fit_encoded_are_the_value_themselves() -> None:
    """Base64 takes a third more; the metadata is then in a header."""
    body = random_bytes(1_900_000)

    made = buried(a_death(a_record(body), reason="undecodable", error_type="Undecodable"))

    assert made.value == body
    assert size(made) <= LIMIT < TOPIC_LIMIT
    dead = opened(as_read(made))
    assert (dead.raw, dead.reason, dead.missing) == (body, "undecodable", None)
    assert dead.metadata["error_type"] == "Undecodable"


def test_a_ticket_that_fits_without_its_metadata_is_the_value_itself() -> None:
    """It is still a ticket for who reads it."""
    blob = random_text(LIMIT - 5_500)
    record = a_ticket_record(blob=blob)

    made = buried(a_death(record, error="e" * SHORT_ERROR))

    assert made.value == record.body
    dead = opened(as_read(made))
    assert dead.fields == {"ticket_id": "ticket-1", "task_type": "BUILD", "blob": blob}
    assert (dead.raw, dead.metadata["retry_count"]) == (None, 3)


def test_of_a_ticket_as_large_as_the_topic_takes_the_place_is_left() -> None:
    """Two MiB that do not compress: the ticket itself is still at its source."""
    body = orjson.dumps({"ticket_id": "big", "task_type": "BUILD", "blob": random_text(2**21)})

    made = buried(a_death(a_record(body)))
    dead = opened(as_read(made))

    assert size(made) < 10_000
    metadata = orjson.loads(made.value)["dlq_metadata"]
    assert metadata["payload_bytes"] == len(body)
    assert metadata["payload_sha256"] == hashlib.sha256(body).hexdigest()
    assert (dead.id, dead.type) == ("big", "BUILD")
    assert dead.missing == Missing(len(body), hashlib.sha256(body).hexdigest())
    assert (dead.fields, dead.raw, dead.source) == (None, None, "execution.tickets|2|41")


names = some.text(max_size=5) | some.just("dlq_metadata")
values = some.integers(-(2**63), 2**63 - 1) | some.text() | some.none()
tickets = some.dictionaries(names, values, max_size=3).map(
    lambda fields: orjson.dumps({"ticket_id": "t", "task_type": "B"} | fields)
)
bodies = some.none() | some.binary(max_size=60) | tickets


@given(
    body=bodies,
    error=some.text(some.characters(exclude_categories=[])),
    headers=some.lists(some.tuples(some.text(min_size=1), some.none() | some.binary()), max_size=3),
)
def test_every_form_has_ticket_cause_and_place(
    body: bytes | None, error: str, headers: list[tuple[str, bytes | None]]
) -> None:
    """Whatever the record was, and however little of it is left."""
    record = a_record(body, headers=tuple(headers))
    death = a_death(record, error=error)

    for made in all_forms(death):
        dead = opened(as_read(made))

        assert (dead.id, dead.type) == (death.ticket.id, death.ticket.type)
        assert (dead.reason, dead.source) == (death.reason, record.place)
        assert (dead.dlq_id, set(dead.metadata)) == (dlq_id_of(record.place), SEEDS_NAMES)
        assert (dead.metadata["retry_count"], dead.metadata["dlq_published_at"]) == (3, NOW_MS + 2)
        if isinstance(death.ticket, Ticket) and dead.missing is None:
            own = {k: v for k, v in death.ticket.fields.items() if k != "dlq_metadata"}
            assert (dead.fields, dead.raw) == (own, None)
        elif dead.missing is None:
            assert (dead.fields, dead.raw) == (None, body)


# --- what others put there --------------------------------------------------------------------


def on_the_topic(body: bytes | None, **changed: Any) -> Record:
    """A record of the dead letter topic that is not ours."""
    return a_record(body, topic="execution.tickets.dlq", partition=1, offset=9, **changed)


def test_a_dead_letter_of_another_program_is_read_by_its_value() -> None:
    """A writer that follows the seed is understood."""
    metadata: dict[str, Any] = {"original_error": "boom", "error_type": "E", "retry_count": 3}
    metadata |= {"last_failure_timestamp": 5, "dlq_published_at": 6}
    body = orjson.dumps({"ticket_id": "a", "task_type": "B", "x": 1, "dlq_metadata": metadata})

    dead = opened(on_the_topic(body))

    assert dead.fields == {"ticket_id": "a", "task_type": "B", "x": 1}
    assert (dead.id, dead.type, dead.metadata) == ("a", "B", metadata)
    assert (dead.reason, dead.source, dead.redrives) == ("unknown", "execution.tickets.dlq|1|9", 0)


def test_a_ticket_without_metadata_is_a_ticket() -> None:
    """Somebody put it there by hand."""
    dead = opened(on_the_topic(b'{"ticket_id": "a", "task_type": "B"}'))

    assert (dead.id, dead.fields) == ("a", {"ticket_id": "a", "task_type": "B"})
    assert dead.metadata["dlq_published_at"] == NOW_MS - 60_000
    assert dead.metadata["error_type"] == "Unknown"


@pytest.mark.parametrize("body", [None, b"", b"\xff", b"[]", b"null", b'{"dlq_metadata": 1}'])
def test_garbage_is_kept_as_it_is(body: bytes | None) -> None:
    """The archive must not stop at it."""
    dead = opened(on_the_topic(body))

    assert (dead.fields, dead.raw, dead.reason) == (None, body, "undecodable")
    assert dead.id == "poison:execution.tickets.dlq:1:9"


def test_metadata_of_the_wrong_types_has_the_right_ones_when_read() -> None:
    """A date that is a text would never be purged."""
    wrong: dict[str, Any] = {"original_error": 5, "error_type": ["x"], "retry_count": "3"}
    wrong |= {"last_failure_timestamp": "2026-01-01", "dlq_published_at": 2**60}
    body = orjson.dumps({"ticket_id": 7, "task_type": "B", "dlq_metadata": wrong})

    dead = opened(on_the_topic(body))

    assert dead.metadata == {
        "original_error": "",
        "error_type": "Unknown",
        "retry_count": 0,
        "last_failure_timestamp": NOW_MS - 60_000,
        "dlq_published_at": NOW_MS - 60_000,
    }
    assert dead.id == "poison:execution.tickets.dlq:1:9"


@pytest.mark.parametrize("said", [b"x", b"-1", b"", b"9" * 40, "٣".encode(), None])
def test_a_count_of_redrives_that_is_none_is_zero(said: bytes | None) -> None:
    """Headers come from anybody."""
    record = on_the_topic(b"{}", headers=(("carteiro_redrives", said),))

    assert opened(record).redrives == 0
    assert opened(as_read(buried(a_death(record)))).redrives == 0


def test_headers_of_nonsense_are_passed_over() -> None:
    """The same is said elsewhere, or not known."""
    names = (
        "dlq_id",
        "dlq_metadata",
        "carteiro_reason",
        "carteiro_ticket_id",
        "carteiro_task_type",
    )
    places = tuple(f"__dlq.errors.{each}" for each in ("topic", "partition", "offset"))
    headers = tuple((name, b"\xff \x00") for name in names + places)

    dead = opened(on_the_topic(b'{"ticket_id": "a", "task_type": "B"}', headers=headers))

    assert (dead.id, dead.type, dead.source) == ("a", "B", "execution.tickets.dlq|1|9")
    assert dead.dlq_id == dlq_id_of(dead.source)


@pytest.mark.parametrize(
    "own", [b"[" * 300 + b"]" * 300, b"12345678901234567890123", b"0.12345678901234567890"]
)
def test_a_ticket_with_an_earlier_death_stays_as_it_came_otherwise(own: bytes) -> None:
    """Nested deeper than a writer goes, or with numbers that lose digits when they are written again."""
    body = b'{"ticket_id":"T","dlq_metadata":{"a":1},"task_type":"BUILD","own":%b}' % own

    made = buried(a_death(a_record(body)))

    start = b'{"ticket_id":"T","task_type":"BUILD","own":%b,"dlq_metadata":{"original_error"' % own
    assert made.value.startswith(start)
    assert opened(as_read(made)).metadata["retry_count"] == 3
