"""Members of an object of JSON are replaced, and all other bytes stay."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.tickets.json_members import is_exact, with_members

# Small and deep enough for every way in which brackets, quotes and names can follow each other.
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_NAMES = st.text(max_size=5) | st.sampled_from(["status", "dlq_metadata", 'a"b', "\\", "{"])
_OBJECTS = st.dictionaries(_NAMES, _VALUES, max_size=5)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (b"{}", b'{"status":"PENDING"}'),
        (b' { "a" : 1 } ', b'{"a" : 1,"status":"PENDING"}'),
        (b'{"n":123456789012345678901234,"m":{}}', None),
        (b'{"f":0.12345678901234567890,"s":"\\u00e9"}', None),
        (b'{"status":"DEAD","a":[1,{"status":2}]}', b'{"status":"PENDING","a":[1,{"status":2}]}'),
        (b'{"\\u0073tatus":{"a":1}}', b'{"status":"PENDING"}'),
        (b'{"a":"}\\"],{","b":2}', None),
        (b'{"dlq_metadata":{"a":[1,2]},"b":2}', b'{"b":2,"status":"PENDING"}'),
        (b'{"a":1,"dlq_metadata":3}', b'{"a":1,"status":"PENDING"}'),
    ],
)
def test_other_members_stay_byte_for_byte(body: bytes, after: bytes | None) -> None:
    """Digits, escapes and names inside of other members."""
    made = with_members(body, {"status": b'"PENDING"'}, without="dlq_metadata")

    assert made == (after or body[:-1] + b',"status":"PENDING"}')


@given(found=_OBJECTS, is_spaced=st.booleans())
def test_object_differs_only_in_these_members(found: dict[str, object], *, is_spaced: bool) -> None:
    """Whatever stands in it."""
    body = orjson.dumps(found, option=orjson.OPT_INDENT_2 if is_spaced else 0)

    made = with_members(body, {"status": b"7"}, without="dlq_metadata")

    expected = {name: each for name, each in found.items() if name != "dlq_metadata"}
    assert orjson.loads(made) == expected | {"status": 7}


@pytest.mark.parametrize(
    ("body", "is_so"),
    [
        (b'{"a":[1,-2.50,0.1,1e5,-0.0],"b":"x"}', True),
        (b'{"a":9223372036854775807,"b":123456789012345.6}', True),
        (b'{"a":"123456789012345678901234 \\" 1e-99999"}', True),
        (b'{"a":123456789012345678901234}', False),
        (b'{"a":[{"b":0.12345678901234567890}]}', False),
        (b'{"a":1e-99999999999999999999}', False),
    ],
)
def test_numbers_that_lose_digits_are_noticed(body: bytes, *, is_so: bool) -> None:
    """In texts nothing is lost."""
    assert is_exact(body) is is_so
