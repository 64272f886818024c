"""The language of searches: what is read, what is refused and why, and what is proposed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import MessageFilter, MessageId, State, TenantId
from carteiro.policy.search import (
    FIELDS,
    Fault,
    Meaning,
    Term,
    Wrong,
    completions,
    meaning_of,
    read_search,
)

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
AN_ID = "0198c0de-0000-7000-8000-000000000001"


def meant(text: str) -> Meaning:
    """The meaning of a search, in São Paulo."""
    return meaning_of(read_search(text), zone=SAO_PAULO, now=NOW)


def test_every_field_restricts_the_messages() -> None:
    """Joined by and, in any order, in any case of the field."""
    text = (
        'STATUS:failed tenant:acme  to:Ana@EXAMPLE.com tag:"big invoice" code:550 after:2026-11-01'
        " before:2026-11-02T10:00Z provider-id:<1@ses> external_id:order-1 recipient:ana kind:email:send"
    )
    assert meant(text) == Meaning(
        MessageFilter(
            tenant=TenantId("acme"),
            kind="email:send",  # type: ignore[arg-type]
            state=State.FAILED,
            to="Ana@example.com",
            external_id="order-1",
            provider_id="<1@ses>",
            recipient_external_id="ana",
            tag="big invoice",
            code="550",
            created_after=datetime(2026, 11, 1, 3, tzinfo=UTC),
            created_before=datetime(2026, 11, 2, 10, tzinfo=UTC),
        )
    )
    assert meant("") == meant("  ") == Meaning()


def test_words_without_a_field_are_an_address_or_an_id() -> None:
    """As people paste them."""
    assert meant("ana@example.com").wanted.to == "ana@example.com"
    assert meant(AN_ID).message == MessageId(AN_ID)
    assert meant(f"id:{AN_ID.upper()}").message == MessageId(AN_ID)


def test_times_may_be_relative() -> None:
    """In minutes, hours or days before now."""
    assert meant("after:90min").wanted.created_after == NOW - timedelta(minutes=90)
    assert meant("after:24h").wanted.created_after == NOW - timedelta(hours=24)
    assert meant("before:7d").wanted.created_before == NOW - timedelta(days=7)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("statsu:failed", Fault(Wrong.UNKNOWN_FIELD, "statsu", "status")),
        ("zzz:1", Fault(Wrong.UNKNOWN_FIELD, "zzz")),
        ("status:failde", Fault(Wrong.STATUS, "failde", "failed")),
        ("status:x", Fault(Wrong.STATUS, "x")),
        ("invoice", Fault(Wrong.NO_FIELD, "invoice")),
        ("tag:a tag:b", Fault(Wrong.TWICE, "tag")),
        ('tag:""', Fault(Wrong.EMPTY, "tag")),
        ('tag:"open', Fault(Wrong.UNREADABLE, 'tag:"open')),
        ('tag:"a"b', Fault(Wrong.UNREADABLE, 'tag:"a"b')),
        ("after:yesterday", Fault(Wrong.TIME, "yesterday")),
        ("before:9999-12-31T23:00", Fault(Wrong.TIME, "9999-12-31T23:00")),
        ("after:2026-11-02 before:2026-11-01", Fault(Wrong.BACKWARDS)),
        ("id:1", Fault(Wrong.ID, "1")),
        ("x" * 1001, Fault(Wrong.TOO_LONG, "1000")),
    ],
)
def test_faults_name_the_part_and_what_may_be_meant(text: str, fault: Fault) -> None:
    """Nothing is searched then: half of a search would find the wrong messages."""
    found = meant(text)
    assert fault in found.faults
    assert found.wanted == MessageFilter()


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """And what was read is written so that it reads the same."""
    search = read_search(text)
    assert search.faults or read_search(str(search)) == search
    assert len(completions(text, {"tag": ["a", "b c"]})) <= len(FIELDS)
    meaning_of(search, zone=UTC, now=NOW)


def test_search_with_another_value_keeps_the_rest() -> None:
    """As the chips of a page need it."""
    search = read_search("status:failed tag:a")
    assert str(search.having("tag", "big invoice")) == 'status:failed tag:"big invoice"'
    assert str(search.having("tag", "")) == "status:failed"
    assert search.given("tag") == "a"
    assert search.given("to") == ""
    assert Term("tag", "a") in search.terms


def test_completions_are_whole_searches() -> None:
    """Fields that are not used yet, then the known values of a field."""
    known = {"status": ["failed", "sent"], "tag": ["big invoice", "big"]}
    assert completions("", known)[:2] == ["status:", "tenant:"]
    assert completions("status:failed t", known) == [
        f"status:failed {each}:" for each in ("tenant", "to", "tag")
    ]
    assert completions("status:failed s", known) == []
    assert completions("status:", known) == ["status:failed", "status:sent"]
    assert completions("to:a@b.c STATUS:F", known) == ["to:a@b.c status:failed"]
    assert completions("tag:big", known) == ['tag:"big invoice"', "tag:big"]
    assert completions('tag:"big i', known) == ['tag:"big invoice"']
    assert completions("to:x", known) == []
