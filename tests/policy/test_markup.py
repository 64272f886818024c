"""Tags as every client may read them: none is missed, and the work grows linearly with the source."""

import pytest
import selectolax.lexbor
from hypothesis import given, settings
from hypothesis import strategies as st

from carteiro.policy.markup import WHAT_FOLLOWS, Reader, Tag


def tags(source: str) -> list[Tag]:
    """Every start tag of every reading."""
    return list(Reader(source).read())


def names(source: str) -> list[str]:
    """Their names."""
    return [tag.name for tag in tags(source)]


def test_attributes_are_read_as_they_are_written() -> None:
    """Quoted or bare, with and without a value, with any separator."""
    [tag] = tags("<A b='1' C=\"2\"d = 3/e/f\ng=\t'>' =h i=>x")

    assert tag.name == "a"
    assert tag.attributes == [
        ("b", "1"),
        ("c", "2"),
        ("d", "3/e/f"),
        ("g", ">"),
        ("=h", ""),
        ("i", ""),
    ]


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("x < y <3 <b>", ["b"]),
        ("</p a='<i>'><b>", ["b"]),
        ("<!doctype html><?xml x='>'?></ <i>><b>", ["b"]),
        ("<!-- <i> --><b>", ["b"]),
        ("<!--><b> -->", ["b"]),
        ("<!-- --!><b> -->", ["b"]),
        ("<!--[if mso]><i><![endif]--><b>", ["i", "b"]),
        ("<!-- [if mso]><i><![endif]--><b>", ["b"]),
        ("<!--[if --><i>]><b>", ["i", "b"]),
        ("<!-- <b>", ["b"]),
        ("<![CDATA[<i>]]><b>", ["b"]),
        ("<![CDATA[x><i>]]><b>", ["i", "b"]),
        ("<xmp><i></xmp><b>", ["xmp", "i", "b"]),
        ("<xmp><i a='</xmp><b>'>", ["xmp", "i", "b"]),
        ("<title><!--</title><b>-->", ["title", "b"]),
        ("<xmp></xmpx><b></XMP/>", ["xmp", "b"]),
        ("<plaintext></plaintext><b>", ["plaintext", "b"]),
        ("<b", ["b"]),
        ("<b a='", ["b"]),
    ],
)
def test_every_tag_of_any_client_is_read(source: str, read: list[str]) -> None:
    """A tag hidden from one client may be visible to another."""
    assert names(source) == read


def test_text_of_a_style_is_read_once() -> None:
    """With any number of tags in it."""
    [outer, inner, last] = tags("<style>a<style>b</style><style>c")

    assert (outer.css, inner.css) == ("a<style>b", "")
    assert last.css == f"c{WHAT_FOLLOWS}"


UNITS = [
    *("<a>", "<a b>", "<a b='c'>", "<a ", '<a b="', "<a b='\"", "<", "</", "</a>", "x"),
    *("<!--", "<!-- -->", "<!--[if", "<!--[if x]>", '<!--[if x]><a b="', "-->", "<!x", "<![CDATA["),
    *("<style>", "<xmp>", "<style><xmp><title>", "<xmp></title><title></xmp>", "</xmp", "<xmp"),
    *("<noscript><iframe><noembed><noframes>", "<svg><style>", "<select><xmp></select>", "&#106;"),
    "<!--[if x]><xmp a='<![CDATA[<title>",
]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("end", ["", "-->", ">", "\"'>", "</xmp></style>"])
def test_work_grows_linearly_with_the_source(unit: str, end: str) -> None:
    """Twice the source is at most twice the work, and a little: no reading is followed twice."""

    def work(count: int) -> tuple[int, int]:
        reader = Reader(unit * count + end + "x" * 50 * count)
        for _ in reader.read():
            pass
        return reader.tags + reader.attributes, reader.looked_at

    steps, looked_at = work(100)
    more_steps, looked_at_more = work(200)

    assert more_steps <= 2 * steps + 10
    assert looked_at_more <= 2 * looked_at + 1_000


_PIECES = st.sampled_from(
    [
        *UNITS,
        *("<img src=x onerror=x>", "<a title='", "'>", '">', "</style>", "</title>", "]]>", "</p>"),
        *("<table>", "<select>", "</select>", "<svg>", "</svg>", "<template>", "<math><mi>"),
    ]
)


@settings(max_examples=500)
@given(st.lists(_PIECES, max_size=12).map("".join), st.booleans())
def test_lexbor_sees_no_handler_that_is_not_read(source: str, scripting: bool) -> None:
    """A whole HTML parser builds its document from tags that were read here."""
    parsed = selectolax.lexbor.LexborHTMLParser(source + WHAT_FOLLOWS, scripting=scripting)
    sees = any("onerror" in node.attributes for node in parsed.css("*"))

    reads = any("onerror" in dict(tag.attributes) for tag in tags(source))

    assert reads or not sees
