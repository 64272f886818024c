"""Find what must not be in the HTML of an e-mail: anything that runs. Pure.

1. `spells_danger`, a few searches: most mails do not even spell out anything that runs, in any disguise.
2. `look_closely` reads the tags of the rest, in every way that a client may read them (`markup`).
3. Where clients build different documents from the same tags, a second, independent parser (Lexbor) must
   agree that nothing runs.

Each step has bounds. A mail that spells out something active and exceeds them is refused.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from html import unescape

from selectolax.lexbor import LexborHTMLParser, LexborNode

from carteiro.policy.markup import WHAT_FOLLOWS, Reader, TooMuchMarkup

SCREENED_AT_ONCE = (
    16 * 1024
)  # characters that `spells_danger` looks through in a millisecond or two

# Lexbor takes quadratic time and memory on tags that it must repeat, merge or search for the end of.
# Within these bounds it takes 60 ms at worst, and others can run meanwhile.
LARGEST_PARSED = 64 * 1024  # characters
MOST_PARSED_TAGS = 500
MOST_PARSED_ATTRIBUTES = 2_000
_MOST_ELEMENTS = 4 * MOST_PARSED_TAGS  # one tag may become many, if formatting is never closed
MOST_COMMENTS = 500  # in styles; what is around each is looked at, which takes some 20 µs
_TOO_LARGE = "spells out active content and is too large to be parsed"
_PARSED = re.compile(  # where clients build different documents
    r"<(?:svg|math|select|template|frameset|iframe|noembed|noframes|noscript|plaintext|textarea|xmp|!\[CDATA\[)",
    re.IGNORECASE | re.ASCII,
)

_WRAPPERS = r"(?:[a-z][a-z0-9+.-]*:)*?"  # feed:, view-source:, …: some clients open the URL behind
_SCRIPT_URL = re.compile(r"(?:java|vb)script:")
_STARTS_SCRIPT = re.compile(rf"{_WRAPPERS}(?:java|vb)script:")
_DATA_URL = re.compile(rf"{_WRAPPERS}(data:)")
_PICTURE = re.compile(r"data:image/(?!svg)")
_NO_PICTURE = r"data:(?!image/(?!svg))"
_ANIMATED_DATA = re.compile(rf"(?:^|;){_WRAPPERS}{_NO_PICTURE}")
_GIVEN_DATA = re.compile(rf"[=;][\"']?{_WRAPPERS}{_NO_PICTURE}")  # as an attribute's value
_DOCUMENT = re.compile(r"html|xml|xsl|rss")  # in the media type of a data: URL
_ACTIVE_CSS = re.compile(
    r"(?:java|vb)script:|expression\(|-moz-binding:"
    r"|url\([\"']?data:(?:text/(?:html|xml)|application/(?:xhtml\+)?xml)"
)
_ACTIVE_TAGS = ("<script", "<object", "<embed", "<applet")
_SPELLED_OUT = {  # few words are looked for in every mail; each stands for more precise ones
    "script:": ("javascript:", "vbscript:"),
    "data:": (
        *("data:text/", "data:application/", "data:image/svg", "+xml"),
        *("<fencedframe", "<frame", "<iframe", "<portal", "<use"),
    ),
    "expression(": ("expression(",),
    "-moz-binding:": ("-moz-binding:",),
    "srcdoc": ("srcdoc",),
    "attributename=": ("attributename=on", 'attributename="on', "attributename='on"),
    "refresh": ("http-equiv=refresh", 'http-equiv="refresh', "http-equiv='refresh"),
}
_HANDLER_NAME = re.compile(r"on[^\"']*")  # no client knows a handler with a quote in its name
# Attribute names follow white space, a slash or the quote that ended the value before.
_EVENT_HANDLER = re.compile(r"on(?<=[\t\n\f\r /\"']on)[^\t\n\f\r />=\"']*[\t\n\f\r ]*=")
_IMPORT = re.compile(r"import(?<=[\t\n\f\r \"'=]import)(?=[\t\n\f\r \"'>]|$)")

_IGNORED_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0]+")
_LEADING_ZEROS = re.compile(r"&#(?:0+(?=[0-9])|([xX])0+(?=[0-9a-fA-F]))")
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")  # larger than any code point
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})(?:\r\n|[ \t\r\n\f])?|\n|(.))", re.IGNORECASE)
_COMMENT_AFTER_LETTER = re.compile(r"/\*(?:(?<=[a-z(]/\*)|(?<=[^-]-/\*))", re.IGNORECASE)
_COMMENT_BEFORE_LETTER = re.compile(r"\*/[a-z(:/-]", re.IGNORECASE)
_COMMENT_START = re.compile(r"/\*")
_COMMENT_END = re.compile(r"\*/")
_BEFORE_COMMENT = 80  # characters: any of our words and rules, with a space behind each character
_BEHIND_COMMENT = 64
_IN_OUR_WORDS = frozenset("abcdefghijklmnopqrstuvwxyz(:)\"' -")
_BEHAVIOR = "behavior:"
# What attaches no script: a plain word (scroll-behavior:smooth), and Outlook's shapes, in many a mail.
_PLAIN = r"behavior:(?:url\([\"']?#default#vml[\"']?\)|[a-z,-]{0,24})(?:!important)?"
_BEHAVES = re.compile(rf"(?!{_PLAIN}(?:[;}}]|/\*|$))behavior:")
_END_OF_ATTRIBUTE = r"[\"'](?:/?>|[a-z:-]+=[\"'](?!url\()[a-z0-9#%])"
_MAY_BEHAVE = re.compile(rf"(?!{_PLAIN}(?:[;}}]|{_END_OF_ATTRIBUTE}))behavior:")
_CODE_POINTS = 0x110000

_FRAMES = frozenset({"fencedframe", "frame", "iframe", "portal", "use"})
_PLUGINS = frozenset({"applet", "embed", "object"})
_LOADED_BY_PLUGINS = frozenset({"archive", "classid", "code", "codebase", "data", "src"})
_IMAGES = frozenset({"feimage", "image", "img", "link"})
_NAVIGATION = frozenset({"action", "by", "formaction", "from", "href", "to", "xlink:href"})
_SHOWN_ATTRIBUTES = frozenset(
    {"abbr", "alt", "aria-description", "aria-label", "label", "placeholder", "summary", "title"}
)
_LISTS_OF_URLS = frozenset({"imagesrcset", "srcset", "values"})
_PRINTABLE_NAME = re.compile(r"[a-z][a-z0-9:-]{0,31}")


def find_danger(html: str) -> str | None:
    """Why the HTML must not be sent: the element or attribute at fault, never its content."""
    return look_closely(html) if spells_danger(html) else None


# --- the screen -------------------------------------------------------------------------------


def spells_danger(html: str) -> bool:
    """Whether active content is spelled out anywhere, be it as harmless text; False is certain."""
    lowered = html.lower()
    if _EVENT_HANDLER.search(lowered) or any([tag in lowered for tag in _ACTIVE_TAGS]):  # noqa: C419 - a generator costs twice the searches
        return True
    has_style = "<style" in lowered
    if has_style and ("<svg" in lowered or "<math" in lowered):
        return True  # there, markup may stand between the letters
    if "&" not in lowered:
        return _spells_danger_as_is(lowered)
    # Only in a style element are character references no other characters.
    if has_style and _spells_danger_as_is(lowered):
        return True
    return _spells_danger_as_is(_unescape(html).lower())


def _spells_danger_as_is(text: str) -> bool:
    squeezed = _squeeze(text)
    for telltale, words in _SPELLED_OUT.items():
        if telltale in squeezed and any(word in squeezed for word in words):
            return True
    if "data:" in squeezed and _GIVEN_DATA.search(squeezed):
        return True
    if _BEHAVIOR in squeezed and _MAY_BEHAVE.search(squeezed):
        return True
    if "<link" in text and _IMPORT.search(text):
        return True
    if (
        "/*" in text
        and _COMMENT_AFTER_LETTER.search(squeezed)
        and _COMMENT_BEFORE_LETTER.search(squeezed)
    ):
        return True
    return "\\" in text and _spells_danger_as_is(_decode_css(text).lower().replace("\\", ""))


def _squeeze(text: str) -> str:
    """The text without white space and control characters, which clients ignore inside a URL."""
    squeezed = "".join(text.split())
    return squeezed if squeezed.isprintable() else _IGNORED_IN_URLS.sub("", squeezed)


def _unescape(text: str) -> str:
    """The text with its character references decoded, however many digits they have."""
    if "&#" in text:
        text = _LONG_NUMBER.sub("\ufffd", _LEADING_ZEROS.sub(r"&#\1", text))
    return unescape(text)


# --- the closer look --------------------------------------------------------------------------


def look_closely(html: str) -> str | None:
    """What runs in it, for whatever client; or the bound that it exceeds."""
    styles = _decode_css(_unescape(html))
    if max(html.count("/*"), styles.count("/*")) > MOST_COMMENTS:
        return f"spells out active content and has more than {MOST_COMMENTS} comments in its styles"
    reader = Reader(html)
    try:
        for tag in reader.read():
            attributes = [
                (name, _unescape(value) if "&" in value else value)
                for name, value in tag.attributes
            ]
            reason = _judge_tag(tag.name, attributes) or _judge_css(tag.css)
            if reason is not None:
                return reason
    except TooMuchMarkup as error:
        return f"spells out active content and {error}"
    return _parse_danger(html, reader) if _PARSED.search(html) else None


def _parse_danger(html: str, reader: Reader) -> str | None:
    """What Lexbor finds, if it can be asked."""
    if (
        len(html) > LARGEST_PARSED
        or reader.tags > MOST_PARSED_TAGS
        or reader.attributes > MOST_PARSED_ATTRIBUTES
    ):
        return _TOO_LARGE
    for count, node in enumerate(_elements(html)):
        if count > _MOST_ELEMENTS:
            return _TOO_LARGE
        tag = node.tag or ""
        given = [(name.lower(), value or "") for name, value in node.attributes.items()]
        reason = _judge_tag(tag, given) or (tag == "style" and _judge_css(node.text()))
        if reason:
            return reason
    return None


def _elements(source: str) -> Iterator[LexborNode]:
    """Every element, templates' insides too."""
    has_templates = "<template" in source.lower()  # asking the tree itself costs twice the parse
    root = LexborHTMLParser(source + WHAT_FOLLOWS).root
    pending = [] if root is None else [root]
    while pending:
        node = pending.pop()
        yield from node.traverse()
        if has_templates:
            pending += node.template_fragments()


# --- one element ------------------------------------------------------------------------------


def _judge_tag(tag: str, attributes: list[tuple[str, str]]) -> str | None:
    if tag == "script":
        return "script element"
    if tag == "meta" and any(
        name == "http-equiv" and value.strip().lower() == "refresh" for name, value in attributes
    ):
        return "meta refresh"
    for name, value in attributes:
        if value and _is_active(tag, name, value):
            return f"active content in {_shown(name)} of {_shown(tag)}"
    return None


def _is_active(tag: str, name: str, value: str) -> bool:  # noqa: PLR0911 - a list of rules
    if _HANDLER_NAME.fullmatch(name) or name == "srcdoc":
        return True
    if tag in _PLUGINS and name in _LOADED_BY_PLUGINS:
        return True
    if name == "attributename" and _squeeze(value.lower()).startswith("on"):
        return True  # a handler that comes with an animation
    if tag == "link" and name == "rel" and "import" in value.lower().split():
        return True
    if name in _SHOWN_ATTRIBUTES or name == "content":
        return False
    if name == "style":
        return _has_active_css(value)
    url = _squeeze(value.lower())
    if name in _LISTS_OF_URLS:
        if name == "values" and ("data:image/svg" in url or _ANIMATED_DATA.search(url)):
            return True
        return _SCRIPT_URL.search(url) is not None or _has_document(url)
    if _STARTS_SCRIPT.match(url) or ("url(" in url and _has_active_css(value)):
        return True
    data = _DATA_URL.match(url)
    return data is not None and _is_document(tag, name, url[data.start(1) :])


def _is_document(tag: str, name: str, url: str) -> bool:
    """Whether a client may open it as a document; images, such as SVG in an ``img``, run nothing."""
    if tag in _FRAMES:
        return True
    if name in _NAVIGATION and tag not in _IMAGES:
        return _PICTURE.match(url) is None
    return _has_document(url)


def _has_document(urls: str) -> bool:
    _, *rest = urls.split("data:")
    types = (url.partition(",")[0].partition(";")[0] for url in rest)
    return any(
        _DOCUMENT.search(media_type) for media_type in types if not media_type.startswith("image/")
    )


# --- CSS --------------------------------------------------------------------------------------


def _judge_css(css: str) -> str | None:
    """Why a style element must not be sent; in an image its text may be escaped."""
    if css and (_has_active_css(css) or _has_active_css(_unescape(css))):
        return "active content in a style element"
    return None


def _has_active_css(css: str) -> bool:
    decoded = _decode_css(css).lower()
    if _runs(_squeeze(decoded)):
        return True
    return "/*" in decoded and any(
        _runs(before + _squeeze(behind), begins_in=len(before))
        for before, behind in _around_comments(decoded)
    )


def _runs(squeezed: str, *, begins_in: int | None = None) -> bool:
    """Whether something active is there; ``begins_in``: among so many first characters."""
    searches = (_ACTIVE_CSS, _BEHAVES) if _BEHAVIOR in squeezed else (_ACTIVE_CSS,)
    found = [match.start() for each in searches if (match := each.search(squeezed)) is not None]
    return bool(found) and (begins_in is None or min(found) < begins_in)


def _around_comments(css: str) -> Iterator[tuple[str, str]]:
    """What stands before each comment, squeezed, and behind it, where comments leave no trace, as in old clients.

    Whether a "/*" begins a comment depends on where strings and URLs do, and clients disagree about that. So each
    one is taken to begin one, whatever stands before it. The work is linear: the last is looked at first.
    """
    css = _IGNORED_IN_URLS.sub(" ", css)
    ends = [found.end() for found in _COMMENT_END.finditer(css)]
    behind: dict[int, str] = {}
    starts = [found.start() for found in _COMMENT_START.finditer(css)]
    for start in reversed(starts):
        which = bisect_left(ends, start + len("/**/"))
        end = ends[which] if which < len(ends) else len(css)
        which = bisect_left(starts, end)
        following = starts[which] if which < len(starts) else len(css)
        text = css[end : min(following, end + _BEHIND_COMMENT)] + behind.get(following, "")
        behind[start] = text[:_BEHIND_COMMENT]
        if start and css[start - 1] in _IN_OUR_WORDS:
            yield _squeeze(css[max(0, start - _BEFORE_COMMENT) : start]), behind[start]


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
