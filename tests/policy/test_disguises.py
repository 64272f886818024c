"""Disguises: character references and CSS escapes are decoded as clients decode them."""

from html import unescape
from html.entities import html5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.policy.disguises import IGNORED_IN_URLS, decode_css, squeeze, unescape_html

_PIECES = st.sampled_from(
    [*("&", "#", "x", "X", ";", "0", "106", "lt", "amp", "not", "notin", "frac", "12"), *html5]
)


@given(st.text(alphabet=st.characters(max_codepoint=0xFF)))
def test_nothing_that_clients_ignore_is_left(text: str) -> None:
    """In ASCII or not, with the same result."""
    assert squeeze(text) == IGNORED_IN_URLS.sub("", text)


@given(st.lists(_PIECES | st.text(max_size=2), max_size=8).map("".join))
def test_references_are_decoded_by_the_standard(text: str) -> None:
    """Known or not, with and without their end, in any order."""
    assert unescape_html(text) == unescape(text)


@pytest.mark.parametrize("code", [*range(0x200), 0xD7FF, 0xD800, 0xFFFE, 0x10FFFF, 0x110000])
def test_numbers_are_decoded_by_the_standard(code: int) -> None:
    """Decimal or hexadecimal, with any number of leading zeros."""
    decoded = unescape(f"&#{code};")

    assert unescape_html(f"&#{code}") == decoded
    assert unescape_html(f"&#{'0' * 5_000}{code};") == decoded
    assert unescape_html(f"&#X{'0' * 5_000}{code:x};") == decoded


@pytest.mark.parametrize("digits", ["9" * 8, "9" * 5_000, "x" + "f" * 5_000])
def test_number_beyond_all_characters_is_none(digits: str) -> None:
    """With any number of digits it raises nothing."""
    assert unescape_html(f"a&#{digits};b") == "a\ufffdb"


@pytest.mark.parametrize(
    ("css", "decoded"),
    [
        ("\\61 b\\61b", "ab\u061b"),
        ("\\000061\r\nb\\\nc\\z\\\\", "abcz\\"),
        ("\\110000 \\ffffff", "\ufffd\ufffd"),
        ("a\\", "a\\"),
    ],
)
def test_css_escapes_are_decoded(css: str, decoded: str) -> None:
    """With the white space that ends them."""
    assert decode_css(css) == decoded
