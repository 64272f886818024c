"""Usual e-mails take a short way: what it accepts, the validator accepts with the same result."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from carteiro.email.message import MAX_SUBJECT_CHARS, MOST_PLAIN_BYTES, read_email, stored_content
from carteiro.email.plain import plain_email, read_plain
from carteiro.email.submission import Submission, new_message, with_sender
from carteiro.policy.tenancy import SendingRules
from support.builders import a_tenant

_USUAL = {"to": "ana@example.com", "subject": "Bom dia", "html": "<p>Bom dia</p>"}
_TEXTS = some.one_of(
    some.text(max_size=8),
    some.sampled_from(["", " ", "\0", "a\nb", "é", "\u2028", "\ud800", "x" * MAX_SUBJECT_CHARS]),
    some.sampled_from(["ana@example.com", "Ana@EXAMPLE.com", "<ana@example.com>", "ana@localhost"]),
    some.sampled_from(["ana@exämple.com", "postmaster@example.com", "x@shop.test", "a@b--c.com"]),
)
_ANYTHING = some.one_of(_TEXTS, some.none(), some.integers(), some.lists(_TEXTS, max_size=2))
_FIELDS = some.dictionaries(
    some.sampled_from(["to", "subject", "html", "text", "from", "replyTo", "tags", "x"]), _ANYTHING
)


@given(_FIELDS, some.booleans())
def test_plain_email_is_what_the_validator_makes_of_it(fields: dict[str, Any], usual: bool) -> None:
    """Whatever a sender gives."""
    fields = _USUAL | fields if usual else fields

    plain = plain_email(fields)

    if plain is not None:
        email = read_email(orjson.dumps(fields))
        assert plain.content == stored_content(email)
        assert (plain.to, plain.subject, plain.from_) == (email.to, email.subject, email.from_)


@pytest.mark.parametrize(
    "more",
    [{}, {"text": "Bom dia"}, {"from": "shop@example.com"}, {"subject": "É \u00ad\U0001f600"}],
)
def test_usual_email_is_plain(more: dict[str, str]) -> None:
    """Otherwise nobody would notice that the short way is closed."""
    assert read_plain(orjson.dumps(_USUAL | more)) == plain_email(_USUAL | more) is not None


@pytest.mark.parametrize(
    "more",
    [
        {"html": ""},
        {"html": "a\0b"},
        {"html": None},
        {"html": "x" * MOST_PLAIN_BYTES},
        {"subject": "a\nb"},
        {"subject": "x" * (MAX_SUBJECT_CHARS + 1)},
        {"to": "Ana <ana@example.com>"},
        {"to": "ana@EXAMPLE.com"},
        {"from": "nobody"},
        {"priority": 1},
    ],
)
def test_anything_else_is_left_to_the_validator(more: dict[str, Any]) -> None:
    """It reports faults, and writes addresses in normal form."""
    assert plain_email(_USUAL | more) is None
    assert read_plain(orjson.dumps(_USUAL | more)) is None


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"to":"\\ud800"}', b"\xff"])
def test_unreadable_body_is_left_to_the_validator(body: bytes) -> None:
    """It reports the fault."""
    assert read_plain(body) is None


@pytest.mark.parametrize("first", range(0, 0x10800, 0x1000))
def test_every_character_is_stored_as_the_validator_stores_it(first: int) -> None:
    """The digest of an idempotency key covers the stored text: both ways must agree on it."""
    codes = [code for code in range(first or 1, first + 0x1000) if not 0xD800 <= code < 0xE000]
    fields = _USUAL | {"text": "".join(map(chr, codes))}
    plain = plain_email(fields)

    assert plain is not None
    assert plain.content == stored_content(read_email(orjson.dumps(fields)))


def test_default_from_and_key_are_those_of_the_validator() -> None:
    """The message has the tenant's From; the key's digest is that of the e-mail as given."""
    tenant = a_tenant(default_from='"shop"@example.com')
    made = []
    for email in (plain_email(_USUAL), read_email(orjson.dumps(_USUAL))):
        assert email is not None
        submission = Submission(email, tenant, "request-1", "key-1")
        sent = with_sender(email, tenant, owner=None, rules=SendingRules())
        made.append(new_message(submission, sent))

    plain, full = made
    assert (plain.content, plain.key) == (full.content, full.key)
    assert (plain.to, plain.subject, plain.ttl, plain.priority, plain.delivery) == (
        *(full.to, full.subject, full.ttl, full.priority, full.delivery),
    )
