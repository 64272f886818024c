"""Trace contexts of W3C: what is valid, and how a content keeps one."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.email.message import read_email, restore_email, stored_content
from carteiro.errors import InvalidMessage
from carteiro.policy.trace_context import (
    TRACE,
    TraceContext,
    read_headers,
    read_trace,
    span_id_of,
    trace_id_of,
    trace_in,
    with_trace,
)

ID, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HERE = TraceContext(ID, SPAN, is_sampled=True)


def test_a_valid_header_is_read() -> None:
    """As W3C has it: a later version may say more, and only the first flag has a meaning."""
    for header, is_sampled in {
        f"00-{ID}-{SPAN}-01": True,
        f"00-{ID}-{SPAN}-00": False,
        f"00-{ID}-{SPAN}-03": True,
        f"00-{ID}-{SPAN}-02": False,
        f" 00-{ID}-{SPAN}-01\t": True,
        f"01-{ID}-{SPAN}-01": True,
        f"cc-{ID}-{SPAN}-01-what-a-later-version-says": True,
    }.items():
        assert read_trace(header) == TraceContext(ID, SPAN, is_sampled), header


def test_a_header_that_is_not_valid_is_none() -> None:
    for header in (
        *("", "00", None, 7, b"00", "x" * 10_000, f"00-{ID}-{SPAN}"),
        f"ff-{ID}-{SPAN}-01",
        f"00-{ID}-{SPAN}-01-more",
        f"00-{ID}-{SPAN}-01.",
        f"cc-{ID}-{SPAN}-01more",
        f"00-{ID.upper()}-{SPAN}-01",
        f"00-{ID}-{SPAN}-1",
        f"00-{ID}-{SPAN}-0g",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID}-{SPAN}-01\n",
        f"\u0660\u0660-{ID}-{SPAN}-01",
    ):
        assert read_trace(header) is None, header


def test_a_state_is_bounded() -> None:
    """One that is too long, has too many members or odd characters is left out; the rest is kept."""
    parent = HERE.parent
    for state, kept in {
        "vendor=1,other=2": "vendor=1,other=2",
        f"a={'x' * 254},b={'x' * 253}": f"a={'x' * 254},b={'x' * 253}",
        f"a={'x' * 254},b={'x' * 254}": "",
        "a=" + "x" * 257: "",
        ",".join(f"k{each}=1" for each in range(32)): ",".join(f"k{each}=1" for each in range(32)),
        ",".join(f"k{each}=1" for each in range(33)): "",
        "a=é": "",
        "a=\n": "",
        "a=1, b@c=2 ,": "a=1, b@c=2 ,",
        "a": "",
        "A=1": "",
        "a=1,ana@example.com": "",
        "a=1=2": "",
        7: "",
    }.items():
        found = read_trace(parent, state)
        assert found is not None
        assert found.state == kept, state


def test_headers_are_found_in_any_case_and_only_once() -> None:
    """Of two ``traceparent`` headers none counts; several ``tracestate`` headers are one."""
    parent = HERE.parent.encode()

    assert read_headers([("TraceParent", parent)]) == HERE
    assert read_headers([("traceparent", parent), ("traceparent", parent)]) is None
    assert read_headers([("traceparent", None)]) is None
    assert read_headers([("x", b"1")]) is None
    both = [("traceparent", parent), ("tracestate", b"a=1"), ("Tracestate", b"b=2")]
    assert read_headers(both) == TraceContext(ID, SPAN, is_sampled=True, state="a=1,b=2")


@given(
    content=st.dictionaries(st.text(), st.text() | st.booleans() | st.none(), max_size=4),
    state=st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=512).map(
        lambda text: f"a={text.translate({0x2C: None, 0x3D: None})[:256]}"
    ),
)
def test_a_content_keeps_a_context(content: dict[str, object], state: str) -> None:
    """It comes back as it was, and the content is an object of JSON with one field more."""
    content.pop(TRACE, None)
    trace = read_trace(HERE.parent, state)
    assert trace is not None

    kept = with_trace(orjson.dumps(content).decode(), trace)

    assert trace_in(kept) == trace
    assert {**content, TRACE: orjson.loads(kept)[TRACE]} == orjson.loads(kept)


def test_no_text_in_a_content_is_taken_for_a_context() -> None:
    """Texts of a tenant are inside of strings or of other objects."""
    text = f'"{TRACE}":"{HERE.parent}"}}'
    for content in (
        None,
        "",
        "{}",
        orjson.dumps({"text": text}).decode(),
        orjson.dumps({"template": {"variables": {TRACE: HERE.parent}}}).decode(),
        orjson.dumps({TRACE: HERE.parent, "then": 1}).decode(),
        orjson.dumps({TRACE: "00-1-2-3"}).decode(),
        orjson.dumps({TRACE: 7}).decode(),
        orjson.dumps({"x": [{TRACE: HERE.parent}]}).decode(),
    ):
        assert trace_in(content) is None, content


def test_an_email_keeps_its_context_at_the_end() -> None:
    """A request cannot set it; a stored e-mail has it as its last field, whatever else it has."""
    fields = {"to": "ana@example.com", "subject": "s", "text": "t", "delivery": "at_most_once"}
    with pytest.raises(InvalidMessage) as refused:
        read_email(orjson.dumps({**fields, TRACE: HERE.parent}))
    assert [(each.field, each.message) for each in refused.value.fields] == [
        (TRACE, "is not a known field")
    ]

    kept = with_trace(stored_content(read_email(orjson.dumps(fields))), HERE)

    assert trace_in(stored_content(restore_email(kept))) == HERE


def test_ids_follow_from_what_is_traced() -> None:
    """The same in every process; each attempt has a span of its own."""
    ids = {span_id_of("one", 1), span_id_of("one", 2), span_id_of("two", 1), span_id_of("one", 1)}
    assert len(ids) == 3
    assert {len(each) for each in ids} == {16}
    assert trace_id_of("one") != trace_id_of("two")
    assert len(trace_id_of("one")) == 32
