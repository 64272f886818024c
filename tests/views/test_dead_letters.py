"""Dead letters as JSON: a written entry can be read back, and an invalid one is reported by its line."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.errors import InvalidMessage
from carteiro.model import (
    Category,
    DeadLetter,
    DeadReason,
    EventType,
    Failure,
    KindName,
    MessageId,
    Scope,
    TenantId,
    TimelineEvent,
)
from carteiro.views.dead_letters import export, from_json, import_, to_json
from support.builders import a_failure
from support.burying import a_letter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOON = datetime(2027, 1, 15, 12, 0, 0, 250_000, tzinfo=UTC)


def an_entry(**changes: Any) -> dict[str, Any]:
    """The JSON of a dead letter; ``changes`` are its fields."""
    return to_json(a_letter()) | changes


def refusal(entry: object) -> dict[str, str]:
    """The error of reading an entry."""
    with pytest.raises(InvalidMessage) as caught:
        from_json(entry)
    return {each.field: each.message for each in caught.value.fields}


def nested(levels: int) -> str:
    """An object nested to this depth."""
    return '{"a":' * levels + "1" + "}" * levels


# --- writing --------------------------------------------------------------------------------------


def test_entry_has_the_documented_field_names() -> None:
    """Durations in milliseconds, times in ISO 8601 with milliseconds and Z."""
    letter = a_letter(
        id=MessageId("m-1"),
        content='{"to":"ana@example.com"}',
        failure=a_failure("421"),
        failed_at=_NOON,
        moved_at=_NOON,
        enqueued_at=_NOON - timedelta(minutes=1),
    )

    assert to_json(letter) == {
        "jobId": "m-1",
        "outboxId": "m-1",
        "companyId": "acme",
        "kind": "email:send",
        "originalData": {"to": "ana@example.com"},
        "failedAttempts": 5,
        "lastFailureReason": "Service not available, try later",
        "lastFailureCode": "421",
        "lastFailureTimestamp": "2027-01-15T12:00:00.250Z",
        "enqueuedAt": "2027-01-15T11:59:00.250Z",
        "movedToDLQAt": "2027-01-15T12:00:00.250Z",
        "ttl": 604_800_000,
        "reason": "max_attempts_exceeded",
        "category": "TRANSIENT_ERROR",
        "originalCode": "421 4.3.2",
        "retryable": True,
        "scope": "destination",
        "rule": "smtp.421",
        "failureGroup": "0123456789ab",
        "redrivenAt": None,
    }


def test_history_is_included_on_request() -> None:
    """As in the timeline."""
    event = TimelineEvent(EventType.SENT_ATTEMPT, {"attempt": 1}, _NOON)

    entry = to_json(a_letter(), [event])

    assert entry["events"] == [
        {
            "type": "SENT_ATTEMPT",
            "metadata": {"attempt": 1},
            "createdAt": "2027-01-15T12:00:00.250Z",
        }
    ]


@pytest.mark.parametrize(("content", "data"), [("", None), ("not JSON", "not JSON"), ("[1]", [1])])
def test_any_content_can_be_written(content: str, data: object) -> None:
    """Pruned content is null, and text that is not JSON stays text."""
    assert to_json(a_letter(content=content))["originalData"] == data


@pytest.mark.parametrize("levels", [200, 250, 252, 254, 1000])
def test_deeply_nested_content_can_be_written_and_read_back(levels: int) -> None:
    """Content beyond the depth limit is written as text."""
    letter, file = a_letter(content=nested(levels)), io.BytesIO()

    export([(letter, ())], file)

    assert [each.content for each in import_(file.getvalue().splitlines())] == [letter.content]


# --- reading --------------------------------------------------------------------------------------

_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)
_MOMENTS = st.integers(0, 7 * 10**12).map(lambda ms: _EPOCH + timedelta(milliseconds=ms))
_LETTERS = st.builds(
    DeadLetter,
    id=_NAMES.map(MessageId),
    tenant=_NAMES.map(TenantId),
    kind=_NAMES.map(KindName),
    content=st.dictionaries(_WORDS, _WORDS, max_size=3).map(
        lambda each: orjson.dumps(each).decode()
    ),
    reason=st.sampled_from(DeadReason),
    failed_attempts=st.integers(0, 100),
    failure=st.builds(
        Failure,
        code=_NAMES,
        category=st.sampled_from(Category),
        retryable=st.booleans(),
        scope=st.sampled_from(Scope),
        reason=_WORDS.map(lambda each: f"x{each}"),
        rule=_WORDS,
        original_code=st.none() | _WORDS,
    ),
    failed_at=_MOMENTS,
    enqueued_at=_MOMENTS,
    moved_at=_MOMENTS,
    ttl=st.integers(1, 10**12).map(lambda each: timedelta(milliseconds=each)),
    redriven_at=st.none() | _MOMENTS,
    group=st.text("0123456789abcdef", min_size=12, max_size=12),
)


@given(st.lists(_LETTERS, max_size=3))
def test_written_entry_can_be_read_back(letters: list[DeadLetter]) -> None:
    """Every field, one entry a line, with any text."""
    file = io.BytesIO()

    count = export(((letter, []) for letter in letters), file)

    lines = file.getvalue().splitlines(keepends=True)
    assert count == len(letters) == file.getvalue().count(b"\n")
    assert import_(lines) == letters


def test_optional_fields_have_defaults() -> None:
    """Entries of other systems have fewer fields."""
    optional = {"outboxId", "kind", "originalData", "lastFailureCode", "originalCode", "retryable"}
    optional |= {"scope", "rule", "redrivenAt", "failureGroup"}
    entry = {name: each for name, each in an_entry().items() if name not in optional}

    letter = from_json(entry | {"unknownField": 1})

    assert (letter.kind, letter.content) == ("email:send", "")
    assert (letter.failure.code, letter.failure.rule) == ("UNKNOWN", "imported")


def test_times_are_read_to_the_millisecond() -> None:
    """The precision of every store."""
    letter = from_json(an_entry(movedToDLQAt="2027-01-15T09:00:00.250999-03:00"))

    assert letter.moved_at == _NOON
    assert letter.moved_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"jobId": ""}, "jobId"),
        ({"jobId": 1}, "jobId"),
        ({"outboxId": "other"}, "outboxId"),
        ({"companyId": None}, "companyId"),
        ({"failedAttempts": -1}, "failedAttempts"),
        ({"failedAttempts": "1"}, "failedAttempts"),
        ({"lastFailureReason": ""}, "lastFailureReason"),
        ({"lastFailureReason": " \t"}, "lastFailureReason"),
        ({"lastFailureTimestamp": "yesterday"}, "lastFailureTimestamp"),
        ({"lastFailureTimestamp": 1_800_000_000}, "lastFailureTimestamp"),
        ({"lastFailureTimestamp": "0001-01-01T00:00:00+14:00"}, "lastFailureTimestamp"),
        ({"lastFailureTimestamp": "9999-12-31T23:59:59-14:00"}, "lastFailureTimestamp"),
        ({"enqueuedAt": "1969-12-31T23:59:59.999Z"}, "enqueuedAt"),
        ({"redrivenAt": "2200-01-01T00:00:00.001Z"}, "redrivenAt"),
        ({"enqueuedAt": "2027-01-15T12:00:00"}, "enqueuedAt"),
        ({"movedToDLQAt": None}, "movedToDLQAt"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": 10**18}, "ttl"),
        ({"reason": "bad luck"}, "reason"),
        ({"category": "ERROR"}, "category"),
        ({"scope": "everywhere"}, "scope"),
        ({"failureGroup": "ana@example.com"}, "failureGroup"),
        ({"originalData": orjson.loads(nested(300))}, "originalData"),
    ],
)
def test_invalid_field_is_named(changes: dict[str, Any], field: str) -> None:
    """By its name in the file."""
    assert list(refusal(an_entry(**changes))) == [field]


@pytest.mark.parametrize("entry", [None, [], "x", 1])
def test_entry_that_is_not_an_object_is_refused(entry: object) -> None:
    assert list(refusal(entry)) == ["entry"]


def test_all_missing_fields_are_reported_at_once() -> None:
    """Nobody has to fix a file line by line."""
    assert refusal({})["lastFailureReason"] == "is required"


def test_invalid_lines_are_named_by_number() -> None:
    """Blank lines count, but are skipped."""
    good = orjson.dumps(an_entry())
    bad = orjson.dumps(an_entry(ttl=0))

    with pytest.raises(InvalidMessage) as caught:
        import_([good, b"\n", b"{", bad])

    assert [each.field for each in caught.value.fields] == ["line 3: entry", "line 4: ttl"]


def test_report_of_invalid_lines_is_bounded() -> None:
    """Twenty are enough to see that the file is something else."""
    with pytest.raises(InvalidMessage) as caught:
        import_([b"no json"] * 1000)

    assert len(caught.value.fields) == 20


def test_duplicate_entry_is_read_twice() -> None:
    """The index puts it back once."""
    letter = replace(a_letter(), content="{}")
    line = orjson.dumps(to_json(letter))

    assert import_([line, line]) == [letter, letter]
