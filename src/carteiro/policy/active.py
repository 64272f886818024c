"""Find attributes and styles that run something, in the elements of one mail. Pure.

Each element is judged by itself, wherever it is. No text is judged twice, and the work is limited: a
document that repeats its content costs no more than its source.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from carteiro.policy.disguises import IGNORED_IN_URLS, decode_css, squeeze, unescape_html
from carteiro.policy.markup import TooMuchMarkup

MOST_COMMENTS = 500  # in styles; the text around each is checked, which takes about 20 µs
# Characters of attributes and styles: each is in the source once, and a style may be read in two ways.
MOST_TIMES_JUDGED = 2
SPARE_CHARACTERS = 16 * 1024  # a short mail may repeat more of itself

WRAPPERS = r"(?:[a-z][a-z0-9+.-]*:)*?"  # feed:, view-source:, …: some open the URL after them
NO_PICTURE = r"data:(?!image/(?!svg))"
BEHAVIOR = "behavior:"
# Harmless behaviors: a plain word (scroll-behavior:smooth), and Outlook's shapes, which many mails have.
PLAIN_BEHAVIOR = r"behavior:(?:url\([\"']?#default#vml[\"']?\)|[a-z,-]{0,24})(?:!important)?"

_MAY_RUN = re.compile(r"[:(\\]")  # every URL and style that runs something has one of these
_SCRIPT_URL = re.compile(r"(?:java|vb)script:")
_STARTS_SCRIPT = re.compile(rf"{WRAPPERS}(?:java|vb)script:")
_DATA_URL = re.compile(rf"{WRAPPERS}(data:)")
_PART_OF_MAIL = re.compile(rf"{WRAPPERS}[cm]id:")
_PICTURE = re.compile(r"data:image/(?!svg)")
_ANIMATED_DATA = re.compile(rf"(?:^|;){WRAPPERS}{NO_PICTURE}")
_DOCUMENT = re.compile(r"html|xml|xsl|rss")  # in the media type of a data: URL
_ACTIVE_CSS = re.compile(
    r"(?:java|vb)script:|expression\(|-moz-binding:"
    r"|url\([\"']?data:(?:text/(?:html|xml)|application/(?:xhtml\+)?xml)"
)
_BEHAVES = re.compile(rf"(?!{PLAIN_BEHAVIOR}(?:[;}}]|/\*|$))behavior:")
_HANDLER_NAME = re.compile(r"on[^\"']*")  # clients know no handler with a quote in its name
_COMMENT_START = re.compile(r"/\*")
_COMMENT_END = re.compile(r"\*/")
_BEFORE_COMMENT = 80  # characters: any of our words and rules, with a space after each character
_BEHIND_COMMENT = 64
_IN_OUR_WORDS = frozenset("abcdefghijklmnopqrstuvwxyz(:)\"' -")

_FRAMES = frozenset({"fencedframe", "frame", "iframe", "portal", "use"})
_PLUGINS = frozenset({"applet", "embed", "object"})
# A plugin gets all other attributes, and may load what they name.
_PLAIN_IN_PLUGINS = re.compile(
    r"align|alt|aria-.*|border|class|data-.*|dir|height|hidden|hspace|id|lang|name|role|standby|style"
    r"|tabindex|title|type|vspace|width|xmlns.*"
)
_IMAGES = frozenset({"feimage", "image", "img", "link"})
_NAVIGATION = frozenset({"action", "by", "formaction", "from", "href", "to", "xlink:href"})
_SHOWN_ATTRIBUTES = frozenset(
    {"abbr", "alt", "aria-description", "aria-label", "label", "placeholder", "summary", "title"}
)
_LISTS_OF_URLS = frozenset({"imagesrcset", "srcset", "values"})
_PRINTABLE_NAME = re.compile(r"[a-z][a-z0-9:-]{0,31}")


class Judge:
    """Judges the elements of one mail; raises `TooMuchMarkup` if they repeat more than its source holds."""

    def __init__(self, source: str) -> None:
        self._most_characters = MOST_TIMES_JUDGED * len(source) + SPARE_CHARACTERS
        self._harmless: set[tuple[str, str, str]] = set()  # tag, name and value of attributes
        self._harmless_css: set[str] = set()
        self.characters = 0  # judged already
        self.comments = 0

    def judge_tag(self, tag: str, attributes: Iterable[tuple[str, str]]) -> str | None:
        """The reason why the element must not be sent, except for its text; None: it may."""
        if tag == "script":
            return "has a script element"
        for name, value in attributes:
            if not value or (tag, name, value) in self._harmless:
                continue
            if self._is_active(tag, name, value):
                return _reason(tag, name)
            self._harmless.add((tag, name, value))
        return None

    def judge_css(self, css: str, *, may_be_escaped: bool = False) -> str | None:
        """The reason why the text of a style element must not be sent; in an image it may be escaped."""
        if self._has_active_css(css) or (
            may_be_escaped and "&" in css and self._has_active_css(unescape_html(css))
        ):
            return "has active content in a style element"
        return None

    def _count(self, text: str) -> None:
        self.characters += len(text)
        if self.characters > self._most_characters:
            raise TooMuchMarkup("repeats too much of its attributes and styles to be checked")

    # --- attributes ---------------------------------------------------------------------------

    def _is_active(self, tag: str, name: str, value: str) -> bool:  # noqa: PLR0911 - a list of rules
        if _HANDLER_NAME.fullmatch(name) or name == "srcdoc":
            return True
        if tag in _PLUGINS and not _PLAIN_IN_PLUGINS.fullmatch(name):
            return True
        if tag == "param" and name == "value":
            return True
        if tag == "meta" and name == "http-equiv" and value.strip().lower() == "refresh":
            return True
        if name == "attributename" and squeeze(value.lower()).startswith("on"):
            return True  # a handler that belongs to an animation
        if tag == "link" and name == "rel" and "import" in value.lower().split():
            return True
        if name in _SHOWN_ATTRIBUTES or name == "content" or not _MAY_RUN.search(value):
            return False
        return self._has_active_css(value) if name == "style" else self._runs_url(tag, name, value)

    def _runs_url(self, tag: str, name: str, value: str) -> bool:
        self._count(value)
        url = squeeze(value.lower())
        if name in _LISTS_OF_URLS:
            if name == "values" and ("data:image/svg" in url or _ANIMATED_DATA.search(url)):
                return True
            return _SCRIPT_URL.search(url) is not None or _has_document(url)
        if _STARTS_SCRIPT.match(url) or (tag in _FRAMES and _PART_OF_MAIL.match(url)):
            return True
        if "url(" in url and self._has_active_css(value):
            return True
        data = _DATA_URL.match(url)
        return data is not None and _is_document(tag, name, url[data.start(1) :])

    # --- CSS ----------------------------------------------------------------------------------

    def _has_active_css(self, css: str) -> bool:
        if css in self._harmless_css:
            return False
        self._count(css)
        decoded = decode_css(css).lower()
        if _runs(squeeze(decoded)):
            return True
        if "/*" in decoded and any(
            _runs(before + squeeze(behind), begins_in=len(before))
            for before, behind in self._around_comments(decoded)
        ):
            return True
        self._harmless_css.add(css)
        return False

    def _around_comments(self, css: str) -> Iterator[tuple[str, str]]:
        """The text before each comment, squeezed, and after it, as old clients see it: without the comment.

        A "/*" may begin a comment or be in a string or URL, and clients disagree about that. So each "/*"
        is taken as a comment. The work is linear: the last one comes first.
        """
        self.comments += css.count("/*")
        if self.comments > MOST_COMMENTS:
            raise TooMuchMarkup(f"has more than {MOST_COMMENTS} comments in its styles")
        css = IGNORED_IN_URLS.sub(" ", css)
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
                yield squeeze(css[max(0, start - _BEFORE_COMMENT) : start]), behind[start]


def _is_document(tag: str, name: str, url: str) -> bool:
    """True if a client may open it as a document; images, such as SVG in an ``img``, run nothing."""
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


def _runs(squeezed: str, *, begins_in: int | None = None) -> bool:
    """True if something active is in it; ``begins_in``: within the first characters."""
    searches = (_ACTIVE_CSS, _BEHAVES) if BEHAVIOR in squeezed else (_ACTIVE_CSS,)
    found = [match.start() for each in searches if (match := each.search(squeezed)) is not None]
    return bool(found) and (begins_in is None or min(found) < begins_in)


def _reason(tag: str, name: str) -> str:
    """A reason without content: an unusual name is not repeated, as it may contain anything."""
    if (tag, name) == ("meta", "http-equiv"):
        return "has a meta refresh"
    shown = [each if _PRINTABLE_NAME.fullmatch(each) else "(unprintable)" for each in (name, tag)]
    return f"has active content in {shown[0]} of {shown[1]}"
