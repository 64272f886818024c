"""The e-mail: valid requests, refusals and their texts."""

import base64
import contextlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.email.message import (
    MAX_REQUEST_BYTES,
    Email,
    make_email,
    read_email,
    restore_email,
    stored_content,
)
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import Delivery

PDF = {"filename": "nota.pdf", "contentType": "application/pdf", "content": "JVBERg=="}


def a_body(**changes: Any) -> dict[str, Any]:
    """A valid request; a change to None leaves the field out."""
    fields = {"to": "ana@example.com", "subject": "Bom dia", "html": "<p>Olá</p>"} | changes
    return {name: each for name, each in fields.items() if each is not None}


def read(**changes: Any) -> Email:
    """The e-mail read from such a request."""
    return read_email(json.dumps(a_body(**changes)).encode())


def faults(body: bytes | str) -> list[FieldError]:
    """The errors of a request."""
    with pytest.raises(InvalidMessage) as refusal:
        read_email(body)
    return refusal.value.fields


def faults_of(**changes: Any) -> list[FieldError]:
    """The errors of a request that is valid except for the changes."""
    return faults(json.dumps(a_body(**changes)))


def test_smallest_valid_email() -> None:
    """An address, a subject and one body; the rest has defaults."""
    email = read()

    assert (email.to, email.subject, email.html) == ("ana@example.com", "Bom dia", "<p>Olá</p>")
    assert (email.priority, email.ttl, email.delivery) == (5, None, Delivery.AT_LEAST_ONCE)
    assert (email.cc, email.headers, email.attachments) == ((), {}, ())


def test_email_with_every_field() -> None:
    """Every field arrives under its name, addresses in their normal form."""
    email = read(
        to="ana@Example.com",
        text="Olá",
        cc=["Eva@EXAMPLE.com"],
        bcc=["rui@example.com"],
        replyTo="sac@example.com",
        headers={"X-Pedido": "42", "list-unsubscribe-post": "x", "In-Reply-To": "<a@b>"},
        tags=["nota"],
        attachments=[{**PDF, "contentId": "nota@1"}],
        recipient={"externalId": "42", "email": "ana@EXAMPLE.com", "nome": "Ana"},
        externalId="pedido-42",
        scheduledAt="2030-01-02T03:04:05.678Z",
        priority=1,
        ttl=60_000,
        delivery="at_most_once",
        **{"from": "loja@example.com"},
    )

    assert (email.to, email.from_) == ("ana@example.com", "loja@example.com")
    assert email.cc == ("Eva@example.com",)
    assert email.recipient is not None
    assert email.recipient.email == "ana@example.com"
    assert email.scheduled_at == datetime(2030, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert email.delivery is Delivery.AT_MOST_ONCE


@pytest.mark.parametrize(
    ("changes", "field", "missing"),
    [
        ({"to": None}, "to", True),
        ({"subject": None}, "subject", True),
        ({"html": None}, "html", True),
        ({"html": "", "text": ""}, "html", True),
        ({"html": " \r\n\t"}, "html", True),
        ({"html": "\n", "text": " "}, "html", True),
        ({"to": "ana"}, "to", False),
        ({"to": 5}, "to", False),
        ({"to": ["ana@example.com"]}, "to", False),
        ({"to": "ana@example.com\r\nBcc: eva@example.com"}, "to", False),
        ({"subject": ""}, "subject", False),
        ({"subject": "a\nb"}, "subject", False),
        ({"subject": "a\u2028b"}, "subject", False),
        ({"subject": "a\x00b"}, "subject", False),
        ({"html": "a\x00b"}, "html", False),
        ({"text": "a\x00b"}, "text", False),
        ({"from": "loja"}, "from", False),
        ({"replyTo": "sac"}, "replyTo", False),
        ({"cc": ["ana@example.com"] * 6}, "cc", False),
        ({"cc": ["ana@example.com", "eva"]}, "cc.1", False),
        ({"bcc": "ana@example.com"}, "bcc", False),
        ({"headers": {"Subject": "x"}}, "headers", False),
        ({"headers": {"X-A\r\nBcc": "x"}}, "headers", False),
        ({"headers": {"X-A": "a\r\nBcc: x"}}, "headers.X-A", False),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "headers", False),
        ({"headers": {f"X-{n}": "1" for n in range(11)}}, "headers", False),
        ({"tags": ["a"] * 6}, "tags", False),
        ({"tags": ["a\n"]}, "tags.0", False),
        ({"attachments": [{**PDF, "content": "JVBERg"}]}, "attachments.0.content", False),
        ({"attachments": [{**PDF, "content": "é"}]}, "attachments.0.content", False),
        ({"attachments": [{**PDF, "contentType": "pdf"}]}, "attachments.0.contentType", False),
        ({"attachments": [{**PDF, "contentId": "<a>"}]}, "attachments.0.contentId", False),
        ({"attachments": [{**PDF, "filename": "a\r\nb"}]}, "attachments.0.filename", False),
        ({"attachments": [{"filename": "a"}]}, "attachments.0.contentType", True),
        ({"recipient": {"email": "ana@example.com"}}, "recipient", True),
        ({"recipient": {"externalId": "1"}}, "recipient.email", True),
        ({"recipient": {"externalId": "1", "email": "eva@x.org"}}, "recipient.email", False),
        ({"scheduledAt": "2030-01-02T03:04:05"}, "scheduledAt", False),
        ({"scheduledAt": 1_893_553_445}, "scheduledAt", False),
        ({"scheduledAt": "1893553445"}, "scheduledAt", False),
        ({"scheduledAt": "tomorrow"}, "scheduledAt", False),
        ({"priority": 0}, "priority", False),
        ({"priority": 11}, "priority", False),
        ({"priority": "5"}, "priority", False),
        ({"priority": True}, "priority", False),
        ({"ttl": 0}, "ttl", False),
        ({"ttl": 30 * 24 * 3_600_000 + 1}, "ttl", False),
        ({"delivery": "maybe"}, "delivery", False),
        ({"reply_to": "sac@example.com"}, "reply_to", False),
        ({"color": "red"}, "color", False),
    ],
)
def test_error_names_its_field(changes: dict[str, Any], field: str, missing: bool) -> None:
    """By path; a missing field differs from an invalid one."""
    [fault, *_] = faults_of(**changes)

    assert (fault.field, fault.missing) == (field, missing)


@pytest.mark.parametrize(
    ("size", "passes"), [(1, True), (150, True), (151, False)], ids=["one", "most", "one more"]
)
def test_subject_has_up_to_150_characters(size: int, passes: bool) -> None:
    """Characters are counted, not bytes."""
    subject = "é" * size

    if passes:
        assert read(subject=subject).subject == subject
    else:
        assert [fault.field for fault in faults_of(subject=subject)] == ["subject"]


def test_limits_are_inclusive() -> None:
    read(priority=10, ttl=30 * 24 * 3_600_000, cc=["a@example.com"] * 5, tags=["a"] * 5)
    read(headers={f"X-{n}": "1" for n in range(10)}, priority=1)


def test_request_has_at_most_one_mebibyte() -> None:
    """Exactly one passes, one byte more does not, counted in UTF-8."""
    frame = len(json.dumps(a_body(html="")))
    exact = json.dumps(a_body(html="x" * (MAX_REQUEST_BYTES - frame)))

    assert len(exact) == MAX_REQUEST_BYTES
    assert read_email(exact).html
    assert faults(exact + " ")[0].field == "body"
    assert faults(exact.replace("Bom", "Bóm"))[0].field == "body"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"to":"\xff"}',
        b'{"to":"\\ud800"}',
        "\ud800",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"headers":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b"NaN",
        b'{"to":NaN}',
        b'{"ttl":1' + b"0" * 5_000 + b"}",
        "\x00",
    ],
)
def test_body_that_is_not_a_json_object_is_refused(body: bytes | str) -> None:
    """With `InvalidMessage`, as for every other error."""
    assert faults(body)


@pytest.mark.parametrize("field", ["to", "from", "replyTo"])
def test_display_name_is_refused_with_advice(field: str) -> None:
    """The error says to leave it out."""
    [named] = faults_of(**{field: "Shop <shop@acme.example>"})
    [nonsense] = faults_of(**{field: "Shop"})

    assert named == FieldError(field, "must be an address without a display name")
    assert nonsense == FieldError(field, "is not an e-mail address")


@pytest.mark.parametrize("path", ["../nota.pdf", "/etc/passwd", "a\\nota.pdf", "C:\\", ".", ".."])
def test_attachment_has_a_name_and_no_path(path: str) -> None:
    """A reader may save it under its name; names accepted earlier are still restored."""
    [fault] = faults_of(attachments=[PDF, {**PDF, "filename": path}])
    kept = json.dumps(a_body(attachments=[{**PDF, "filename": path}]))

    assert fault == FieldError("attachments.1.filename", "must be a file name, without a path")
    assert restore_email(kept).attachments[0].filename == path


def test_error_repeats_no_input() -> None:
    """Neither values nor made-up names, which may be personal data."""
    bad = a_body(to="secret", html=5, cc=["secret@"], headers={"secret@x.org": "secret"})

    text = str(InvalidMessage(faults(json.dumps(bad | {"secret@x.org": 1, "secret x": 2}))))

    assert "secret" not in text
    assert "(unknown)" in text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
_NAMES = st.sampled_from(sorted(field.alias or "" for field in Email.model_fields.values()))
_FIELDS = st.dictionaries(_NAMES | st.text(), _JSON)


@given(st.binary() | st.text() | _JSON.map(json.dumps) | _FIELDS.map(json.dumps))
def test_reading_ends_in_an_email_or_in_errors(body: bytes | str) -> None:
    """No input makes reading fail in any other way."""
    with contextlib.suppress(InvalidMessage):
        read_email(body)


@given(_FIELDS)
def test_changes_to_a_valid_request_end_in_an_email_or_in_errors(changes: dict[str, Any]) -> None:
    """Also with some invalid fields, read from JSON or made in Python."""
    body = a_body() | changes
    with contextlib.suppress(InvalidMessage):
        read_email(json.dumps(body))
    with contextlib.suppress(InvalidMessage):
        make_email(body)


def test_email_is_made_by_python_names_too() -> None:
    """Snake case, datetimes and enums."""
    later = datetime.now(UTC) + timedelta(hours=1)

    email = make_email(
        a_body(
            from_="loja@example.com",
            reply_to="sac@example.com",
            scheduled_at=later,
            delivery=Delivery.AT_MOST_ONCE,
            recipient={"external_id": "1", "email": "ana@example.com"},
        )
    )

    assert (email.from_, email.reply_to) == ("loja@example.com", "sac@example.com")
    assert (email.scheduled_at, email.delivery) == (later, Delivery.AT_MOST_ONCE)


@pytest.mark.parametrize(
    "fields",
    [
        {"to": "ana@example.com"},
        a_body(subject="\ud800"),
        a_body(html="\ud800"),
        a_body(to=b"ana@example.com"),
        a_body(html="x" * MAX_REQUEST_BYTES),
        a_body(html="é" * (MAX_REQUEST_BYTES // 2)),
        a_body(attachments=[{**PDF, "content": base64.b64encode(bytes(800_000)).decode()}]),
    ],
)
def test_making_and_reading_have_the_same_limits(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        make_email(fields)


def test_error_of_a_made_email_has_the_json_name() -> None:
    """One field has one name in errors."""
    with pytest.raises(InvalidMessage) as refusal:
        make_email(a_body(reply_to=5, from_=6, attachments=[PDF | {"content_id": 7}]))

    named = {fault.field for fault in refusal.value.fields}
    assert named == {"replyTo", "from", "attachments.0.contentId"}


def test_stored_email_equals_the_original() -> None:
    """The stored text holds nothing that was not given."""
    email = read(
        cc=["Eva@EXAMPLE.com"],
        attachments=[PDF],
        headers={"X-A": "é"},
        recipient={"externalId": "42", "email": "ana@example.com"},
        scheduledAt="2030-01-02T03:04:05.678Z",
    )

    content = stored_content(email)

    assert restore_email(content) == email
    assert json.loads(stored_content(read())) == a_body()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "\ud800",
        "\ud800" * MAX_REQUEST_BYTES,
        json.dumps(a_body(priority="high")),
        json.dumps(a_body(color="red")),
        json.dumps(a_body(html="a\x00b")),
        json.dumps(a_body(headers={"X-A": "a\nb"})),
        json.dumps(a_body(recipient={"email": "ana@example.com"})),
        json.dumps(a_body(recipient={"externalId": "1", "email": "eva@example.com"})),
        json.dumps(a_body(html="x" * (2 * MAX_REQUEST_BYTES))),
    ],
)
def test_damaged_email_is_not_restored(content: str) -> None:
    """The shape is checked again when it is read back."""
    with pytest.raises(InvalidMessage):
        restore_email(content)


def test_restoring_leaves_some_errors_to_later_validations() -> None:
    """Addresses, subject and body have codes of their own, so they are not checked here."""
    restore_email(json.dumps(a_body(to="ana", subject="", html=None)))
