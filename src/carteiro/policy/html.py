"""Find active content in the HTML of an e-mail: anything that runs. Pure.

1. `spells_danger`, a few searches: most mails contain no text that could be active, in any disguise.
2. `look_closely` reads the tags of the rest, in every way that a client may read them (`markup`), and judges
   each (`active`).
3. Where clients build different documents from the same tags, a second, independent parser (Lexbor) must
   agree that nothing runs.

Each step has limits. A mail with text that could be active and that exceeds them is refused.
"""

import re
from collections.abc import Iterator

from pydantic_core import SchemaValidator, core_schema
from selectolax.lexbor import LexborHTMLParser, LexborNode

from carteiro.policy.active import BEHAVIOR, NO_PICTURE, PLAIN_BEHAVIOR, WRAPPERS, Judge
from carteiro.policy.disguises import decode_css, squeeze, unescape_html
from carteiro.policy.markup import WHAT_FOLLOWS, Reader, TooMuchMarkup

SCREENED_AT_ONCE = 16 * 1024  # characters that `spells_danger` searches in one or two milliseconds

# Lexbor takes quadratic time and memory on tags that it must repeat, merge or search for the end of.
# Within these limits it takes 30 ms and 60 MB at worst, and other threads can run.
LARGEST_PARSED = 64 * 1024  # characters
MOST_PARSED_TAGS = 500
MOST_PARSED_ATTRIBUTES = 2_000
MOST_REPEATED = 200_000  # elements and attributes, if Lexbor repeats all formatting after each tag
# The result is judged again, so it must not repeat much.
MOST_BUILT = 8_000  # elements and attributes
MOST_BUILT_CHARACTERS = 4 * LARGEST_PARSED  # in attributes and styles
_TOO_LARGE = "seems to have active content and is too large to be parsed"
_PARSED = re.compile(  # where clients build different documents
    r"<(?:svg|math|select|template|frameset|iframe|noembed|noframes|noscript|plaintext|textarea|xmp|!\[CDATA\[)",
    re.IGNORECASE | re.ASCII,
)
_IMAGE = re.compile(r"<(?:svg|math)", re.IGNORECASE | re.ASCII)

_ACTIVE_TAGS = ("<script", "<object", "<embed", "<applet", "<param")
_FRAMES = ("<fencedframe", "<frame", "<iframe", "<portal", "<use")
_SPELLED_OUT = {  # few words are searched in every mail; each leads to more precise ones
    "script:": ("javascript:", "vbscript:"),
    "data:": ("data:text/", "data:application/", "data:image/svg", "+xml", *_FRAMES),
    "id:": _FRAMES,  # cid: and mid: are parts of the mail
    "expression(": ("expression(",),
    "-moz-binding:": ("-moz-binding:",),
    "srcdoc": ("srcdoc",),
    "attributename=": ("attributename=on", 'attributename="on', "attributename='on"),
    "refresh": ("http-equiv=refresh", 'http-equiv="refresh', "http-equiv='refresh"),
}
# Attribute names follow white space, a slash or the quote that ended the previous value.
_HANDLER = r"on[^\t\n\f\r />=\"']*[\t\n\f\r ]*="
_EVENT_HANDLER = re.compile(rf"(?<=[\t\n\f\r /\"']){_HANDLER}")
_IMPORT = re.compile(r"import(?<=[\t\n\f\r \"'=]import)(?=[\t\n\f\r \"'>]|$)")
_GIVEN_DATA = re.compile(rf"[=;][\"']?{WRAPPERS}{NO_PICTURE}")  # as an attribute's value
_COMMENT_AFTER_LETTER = re.compile(r"/\*(?:(?<=[a-z(]/\*)|(?<=[^-]-/\*))", re.IGNORECASE)
_COMMENT_BEFORE_LETTER = re.compile(r"\*/[a-z(:/-]", re.IGNORECASE)
_END_OF_ATTRIBUTE = r"[\"'](?:/?>|[a-z:-]+=[\"'](?!url\()[a-z0-9#%])"
_STYLE_BEHAVES = re.compile(rf"(?!{PLAIN_BEHAVIOR}[;}}])behavior:")
_MAY_BEHAVE = re.compile(rf"(?!{PLAIN_BEHAVIOR}(?:[;}}]|{_END_OF_ATTRIBUTE}))behavior:")


def find_danger(html: str) -> str | None:
    """The reason why the HTML must not be sent: the element or attribute at fault, never its content."""
    return look_closely(html) if spells_danger(html) else None


# --- first check ------------------------------------------------------------------------------


class _Search:
    """One pass of Rust's regex through a text for many words: a tenth of the time of a search for each.

    Pydantic has that regex. It cannot read half a surrogate pair: such a text is said to have them.
    """

    def __init__(self, pattern: str) -> None:
        self._has = SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
        self._reads = SchemaValidator(core_schema.str_schema(pattern="")).isinstance_python

    def __call__(self, text: str) -> bool:
        return self._has(text) or not self._reads(text)


_may_have_tags = _Search("|".join((*_ACTIVE_TAGS, "<style", rf"[\t\n\f\r /\"']{_HANDLER}")))
_may_spell = _Search("|".join(map(re.escape, (*_SPELLED_OUT, BEHAVIOR))))


def spells_danger(html: str) -> bool:
    """True if there is text that could be active, even if harmless; False is certain."""
    lowered = html.lower()
    if not _may_have_tags(lowered):
        decoded = unescape_html(html).lower() if "&" in lowered else lowered
        return _spells_danger_as_is(decoded)
    if _EVENT_HANDLER.search(lowered) or any([tag in lowered for tag in _ACTIVE_TAGS]):  # noqa: C419 - a generator costs twice the searches
        return True
    has_style = "<style" in lowered
    if has_style and ("<svg" in lowered or "<math" in lowered):
        return True  # there, markup may be between the letters
    if "&" not in lowered:
        return _spells_danger_as_is(lowered)
    # Character references are decoded everywhere but in a style element.
    if has_style and _spells_danger_as_is(lowered):
        return True
    return _spells_danger_as_is(unescape_html(html).lower())


def _spells_danger_as_is(text: str) -> bool:
    squeezed = squeeze(text)
    if _may_spell(squeezed) and _is_spelled(squeezed):
        return True
    if "<link" in text and _IMPORT.search(text):
        return True
    if (
        "*" in text
        and "/*" in text
        and _COMMENT_AFTER_LETTER.search(squeezed)
        and _COMMENT_BEFORE_LETTER.search(squeezed)
    ):
        return True
    return "\\" in text and _spells_danger_as_is(decode_css(text).lower().replace("\\", ""))


def _is_spelled(squeezed: str) -> bool:
    for telltale, words in _SPELLED_OUT.items():
        if telltale in squeezed and any(word in squeezed for word in words):
            return True
    if "data:" in squeezed and _GIVEN_DATA.search(squeezed):
        return True
    return BEHAVIOR in squeezed and bool(
        _MAY_BEHAVE.search(squeezed) or _style_may_behave(squeezed)
    )


def _style_may_behave(squeezed: str) -> bool:
    """True if a style element attaches a script: there, a quote does not end an attribute."""
    _, *styles = squeezed.split("<style")
    texts = [each.partition("</style")[0] + "<" for each in styles]
    return any(BEHAVIOR in text and _STYLE_BEHAVES.search(text) for text in texts)


# --- closer look ------------------------------------------------------------------------------


def look_closely(html: str) -> str | None:
    """The active content for any client, or the limit that it exceeds; None if there is none."""
    try:
        return find_active(html, Reader(html), Judge(html))
    except TooMuchMarkup as error:
        return f"seems to have active content and {error}"


def find_active(html: str, reader: Reader, judge: Judge) -> str | None:
    """Active content in any reading of the tags, or in what Lexbor builds; raises `TooMuchMarkup`."""
    has_image = _IMAGE.search(html) is not None
    for tag in reader.read():
        given = tag.attributes and [
            (name, unescape_html(value) if "&" in value else value)
            for name, value in tag.attributes
        ]
        reason = judge.judge_tag(tag.name, given)
        if reason is None and tag.css:
            reason = judge.judge_css(tag.css, may_be_escaped=has_image)
        if reason is not None:
            return reason
    return _parse_danger(html, reader, judge) if _PARSED.search(html) else None


def _parse_danger(html: str, reader: Reader, judge: Judge) -> str | None:
    """The active content that Lexbor finds, if the source is within its limits."""
    if (
        len(html) > LARGEST_PARSED
        or reader.tags > MOST_PARSED_TAGS
        or reader.attributes > MOST_PARSED_ATTRIBUTES
        or reader.repeated > MOST_REPEATED
    ):
        return _TOO_LARGE
    built = characters = 0
    for tag, given, styles in _elements(html):
        built += 1 + len(given)
        characters += sum(map(len, given.values())) + sum(map(len, styles))
        if built > MOST_BUILT or characters > MOST_BUILT_CHARACTERS:
            return _TOO_LARGE
        reason = judge.judge_tag(tag, given.items())
        for css in styles:
            reason = reason or judge.judge_css(css)
        if reason is not None:
            return reason
    return None


def _elements(source: str) -> Iterator[tuple[str, dict[str, str], set[str]]]:
    """Tag, attributes and styles of every element, including the contents of templates.

    A style that has elements in it is read with and without their text. One inside another style was read
    with that.
    """
    inside = 0  # the number of next styles inside one that was read
    for node in _nodes(source):
        tag = node.tag or ""
        given = {name.lower(): value or "" for name, value in node.attributes.items()}
        styles = set()
        if tag == "style":
            styles.add(node.text(deep=False))
            if inside:
                inside -= 1
            else:
                styles.add(node.text())
                inside = len(node.css("style")) - 1
        yield tag, given, styles


def _nodes(source: str) -> Iterator[LexborNode]:
    has_templates = "<template" in source.lower()  # the tree would take twice the parse
    root = LexborHTMLParser(source + WHAT_FOLLOWS).root
    pending = [] if root is None else [root]
    while pending:
        node = pending.pop()
        yield from node.traverse()
        if has_templates:
            pending += node.template_fragments()
