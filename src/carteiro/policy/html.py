"""Find what must not be in the HTML of an e-mail: anything that runs. Pure.

A parser decides, because only it knows what a mail client will see: entities are decoded, unclosed
tags closed, attributes told from text. Most mails do not even spell out anything that runs, in any
disguise; that is seen much sooner, so they are never parsed.
"""

import re
from collections.abc import Iterator
from html import unescape

from selectolax.lexbor import LexborHTMLParser, LexborNode

# The parser takes quadratic time on thousands of nested elements or of attributes in one tag
# (512 KiB of them: half a minute; this much: under a second).
_LARGEST_PARSED = 64 * 1024
_DEEPEST_SOURCE = 4  # markup kept as text inside markup, such as the inside of an iframe

_URL = r"(?:java|vb)script:|data:(?:text/html|text/xml|application/xml|application/xhtml\+xml)"
_ACTIVE_URL = re.compile(_URL)
_ACTIVE_CSS = re.compile(r"(?:java|vb)script:|expression\(|url\([\"']?(?:" + _URL + ")")
_SPELLED_OUT = re.compile(rf"{_URL}|<script|expression\(|srcdoc")
_TELLTALES = ("script:", "<script", "data:", "expression(", "srcdoc")  # one in each of the above
_HANDLER_NAME = re.compile(r"on[^\"']*")  # no client knows a handler with a quote in its name
# Attribute names follow white space, a slash or the quote that ended the value before.
_EVENT_HANDLER = re.compile(r"on(?<=[\t\n\f\r /\"']on)[^\t\n\f\r />=\"']*[\t\n\f\r ]*=")

_IGNORED_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0]+")
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})(?:\r\n|[ \t\r\n\f])?|\n|(.))", re.IGNORECASE)
_CSS_COMMENT = re.compile(r"(?<=([a-z(/]))?/\*(?:.*?\*/(?=([a-z(:/]))?|.*)", re.DOTALL)
_COMMENT_AFTER_LETTER = re.compile(r"/\*(?<=[a-z(]/\*)", re.IGNORECASE)
_COMMENT_BEFORE_LETTER = re.compile(r"\*/[a-z(:/]", re.IGNORECASE)
_CONDITIONAL_COMMENT = re.compile(r"<!--\[if", re.IGNORECASE)
_CODE_POINTS = 0x110000

# A tag left open at the end is no element yet; the client's own markup behind the mail ends it.
_WHAT_FOLLOWS = " \"'>"

_MARKUP_KEPT_AS_TEXT = frozenset({"iframe", "noembed", "noframes"})
_SHOWN_ATTRIBUTES = frozenset(
    {"abbr", "alt", "aria-description", "aria-label", "label", "placeholder", "summary", "title"}
)
_LISTS_OF_URLS = frozenset({"imagesrcset", "srcset", "values"})
_PRINTABLE_NAME = re.compile(r"[a-z][a-z0-9:-]{0,31}")


def find_danger(html: str) -> str | None:
    """Why the HTML must not be sent: the element or attribute at fault, never its content."""
    if not spells_danger(html):
        return None
    if len(html) > _LARGEST_PARSED:
        return "spells out active content and is too large to be parsed"
    return parse_danger(html)


def spells_danger(html: str) -> bool:
    """Whether active content is spelled out anywhere, be it as harmless text; False is certain."""
    lowered = html.lower()
    if _EVENT_HANDLER.search(lowered):
        return True
    if "&" not in lowered:
        return _spells_danger_as_is(lowered)
    return _spells_danger_as_is(lowered) or _spells_danger_as_is(unescape(html).lower())


def _spells_danger_as_is(text: str) -> bool:
    squeezed = _squeeze(text)
    # The plain searches are eight times as fast as the pattern, and nearly always enough.
    if any([telltale in squeezed for telltale in _TELLTALES]) and _SPELLED_OUT.search(squeezed):  # noqa: C419 - a generator costs twice the searches
        return True
    if "/*" in text and _COMMENT_AFTER_LETTER.search(text) and _COMMENT_BEFORE_LETTER.search(text):
        return True
    return "\\" in text and _spells_danger_as_is(_decode_css(text).lower().replace("\\", ""))


def _squeeze(text: str) -> str:
    """The text without white space and control characters, which clients ignore inside a URL."""
    squeezed = "".join(text.split())
    return squeezed if squeezed.isprintable() else _IGNORED_IN_URLS.sub("", squeezed)


def parse_danger(html: str) -> str | None:
    """What a parser finds in it."""
    sources = [html]
    for _ in range(_DEEPEST_SOURCE):
        inner: list[str] = []
        for source in sources:
            inner += _conditional_comments(source)
            for node in _elements(source):
                reason = _judge_element(node)
                if reason is not None:
                    return reason
                if node.tag in _MARKUP_KEPT_AS_TEXT:
                    inner.append(node.text())
        sources = [source for source in inner if "<" in source]
    if any(spells_danger(source) for source in sources):
        return "spells out active content and is nested too deeply to be parsed"
    return None


def _conditional_comments(source: str) -> list[str]:
    """The markup that only some versions of Outlook see."""
    _, *openings = _CONDITIONAL_COMMENT.split(source)
    return [opening.partition("-->")[0].partition("]>")[2] for opening in openings]


def _elements(source: str) -> Iterator[LexborNode]:
    """Every element that any client sees, with and without scripting; templates' insides too."""
    lowered = source.lower()
    has_templates = "<template" in lowered  # asking the tree itself costs twice the parse
    for scripting in (False, True) if "<noscript" in lowered else (False,):
        root = LexborHTMLParser(source + _WHAT_FOLLOWS, scripting=scripting).root
        pending = [] if root is None else [root]
        while pending:
            node = pending.pop()
            yield from node.traverse()
            if has_templates:
                pending += node.template_fragments()


def _judge_element(node: LexborNode) -> str | None:
    tag = node.tag or ""
    if tag == "script":
        return "script element"
    if tag == "style" and _has_active_css(node.text()):
        return "active content in a style element"
    attributes = node.attributes
    if tag == "meta" and _is_active_refresh(attributes):
        return "active URL in a meta refresh"
    for name, value in attributes.items():
        if value and _is_active(name.lower(), value):
            return f"active content in {_shown(name)} of {_shown(tag)}"
    return None


def _is_active_refresh(attributes: dict[str, str | None]) -> bool:
    if (attributes.get("http-equiv") or "").strip().lower() != "refresh":
        return False
    return _ACTIVE_URL.search(_squeeze((attributes.get("content") or "").lower())) is not None


def _is_active(name: str, value: str) -> bool:
    if _HANDLER_NAME.fullmatch(name) or name == "srcdoc":
        return True
    if name in _SHOWN_ATTRIBUTES or name == "content":
        return False
    if name == "style":
        return _has_active_css(value)
    url = _squeeze(value.lower())
    if name in _LISTS_OF_URLS:
        return _ACTIVE_URL.search(url) is not None
    return _ACTIVE_URL.match(url) is not None or ("url(" in url and _has_active_css(value))


def _has_active_css(css: str) -> bool:
    decoded = _decode_css(css).lower()
    if _ACTIVE_CSS.search(_squeeze(decoded)):
        return True
    return "/*" in decoded and bool(_ACTIVE_CSS.search(_squeeze(_without_comments(decoded))))


def _without_comments(css: str) -> str:
    """Comments inside a word go without a trace, as old clients read them; others part words."""
    return _CSS_COMMENT.sub(lambda found: "" if found[1] and found[2] else ";", css)


def _decode_css(css: str) -> str:
    return _CSS_ESCAPE.sub(_decoded, css) if "\\" in css else css


def _decoded(escape: re.Match[str]) -> str:
    code, literal = escape.groups()
    if code is None:
        return literal or ""
    return chr(int(code, 16)) if int(code, 16) < _CODE_POINTS else "\ufffd"


def _shown(name: str) -> str:
    """A name as reasons may show it: one that is no plain name may hold anything."""
    return name if _PRINTABLE_NAME.fullmatch(name) else "(unprintable)"
