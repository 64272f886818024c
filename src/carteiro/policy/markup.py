"""Read every tag that any client may see in an HTML source. Pure; its work is linear in the source.

Clients disagree about what is text: the inside of an ``xmp``, a ``style`` in a ``select``, CDATA in an
image, a comment that only Outlook reads. Only this decides which tags there are; tables and nesting
only move them. So all readings are followed at once, and they merge where they meet again.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

MOST_ATTRIBUTES = 256  # of one tag
MOST_STEPS = 32_768  # tags and attributes, in all readings

_SPACE = r"[\t\n\f\r ]"
_NAME = re.compile(r"</?([A-Za-z][^\t\n\f\r />]*+)(>)?+")  # most end tags have nothing more
_ATTRIBUTE = re.compile(
    r"[\t\n\f\r /]*+(?:>|([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rf"(?:{_SPACE}*+={_SPACE}*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*+))?+)?+)"
)
_ENDS_OF_TEXT = {  # of elements whose inside is text for some clients, and markup for others
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII)
    for name in (
        *("iframe", "noembed", "noframes", "noscript", "script", "style"),
        *("textarea", "title", "xmp"),
    )
}
_MARKUP = re.compile("<[A-Za-z/!?]")  # any other "<" is text for all clients
_CLOSING = re.compile(">")
_END_OF_CDATA = re.compile(r"\]\]>")
_END_OF_COMMENT = re.compile("-->")
_RARE_END_OF_COMMENT = re.compile("--!>")  # not known to all clients
_END_OF_CONDITION = re.compile(r"\]>")

# Elements that a parser repeats where they were not closed.
_FORMATTING = frozenset(
    {
        *("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong"),
        *("tt", "u"),
    }
)

# A tag left open at the end is not read here; the client's own markup after the mail closes it.
WHAT_FOLLOWS = " \"'>"


class TooMuchMarkup(Exception):
    """The source has more markup than is read; the text names the limit."""


class Tag(NamedTuple):
    """A start tag as written, names in lower case; ``css`` is the text inside a style element."""

    name: str
    attributes: list[tuple[str, str]]
    css: str = ""


class _Search:
    """Finds the next match of a pattern, for increasing positions; reads nothing twice."""

    def __init__(self, pattern: re.Pattern[str], source: str) -> None:
        self._search = pattern.search
        self._source = source
        self._asked = self._start = self._end = -1
        self.looked_at = 0  # characters

    def __call__(self, at: int) -> tuple[int, int]:
        """Start and end of the next match; both the end of the source if there is none."""
        if not self._asked <= at <= self._start:
            found = self._search(self._source, at)
            nowhere = len(self._source)
            self._start, self._end = (nowhere, nowhere) if found is None else found.span()
            self._asked = at
            self.looked_at += self._start - at
        return self._start, self._end


class Reader:
    """Reads one source, once; ``tags`` and ``attributes`` count what was read so far.

    ``repeated`` counts the elements and attributes that a parser adds if it repeats all formatting after
    each tag.
    """

    def __init__(self, source: str) -> None:
        self._source = source = source + WHAT_FOLLOWS
        self._pending: list[int] = []  # where a reading continues: at a "<"
        self._markup = [found.start() for found in _MARKUP.finditer(source)]
        self._met: set[int] = set()  # positions that a reading reached
        self._closing = _Search(_CLOSING, source)
        self._end_of_cdata = _Search(_END_OF_CDATA, source)
        self._end_of_comment = _Search(_END_OF_COMMENT, source)
        self._rare_end_of_comment = _Search(_RARE_END_OF_COMMENT, source)
        self._end_of_condition = _Search(_END_OF_CONDITION, source)
        self._end_of_text = {name: _Search(each, source) for name, each in _ENDS_OF_TEXT.items()}
        self._css_read = 0
        self.tags = 0
        self.attributes = 0
        self.repeated = 0
        self._formatting = 0  # elements and attributes

    @property
    def looked_at(self) -> int:
        """The number of characters searched so far, counting repetitions."""
        searches = (
            *(self._closing, self._end_of_cdata, self._end_of_comment),
            *(self._rare_end_of_comment, self._end_of_condition, *self._end_of_text.values()),
        )
        return sum(search.looked_at for search in searches)

    def read(self) -> Iterator[Tag]:
        """Every start tag of every reading, in the order of the source."""
        self._go_on(0)
        while self._pending:
            at = heappop(self._pending)
            self.tags += 1
            if self.tags + self.attributes > MOST_STEPS:
                raise TooMuchMarkup(f"has more than {MOST_STEPS} tags and attributes")
            named = _NAME.match(self._source, at)
            if named is None:
                self._pass_over(at)
                continue
            name, is_all = named.groups()
            attributes, end = ([], named.end()) if is_all else self._read_attributes(named.end())
            self._go_on(end)
            self.repeated += self._formatting
            if self._source[at + 1] != "/":
                yield self._opened(name.lower(), attributes, end)

    def _opened(self, name: str, attributes: list[tuple[str, str]], end: int) -> Tag:
        if name in _FORMATTING:
            self._formatting += 1 + len(attributes)
        if name not in self._end_of_text:
            return Tag(name, attributes, "")
        text_ends, _ = self._end_of_text[name](end)
        self._go_on(text_ends)
        if name != "style" or text_ends <= self._css_read:
            return Tag(name, attributes)
        self._css_read = text_ends
        return Tag(name, attributes, self._source[end:text_ends])

    def _read_attributes(self, at: int) -> tuple[list[tuple[str, str]], int]:
        """The attributes of a tag, and where it ends."""
        attributes: list[tuple[str, str]] = []
        while (
            found := _ATTRIBUTE.match(self._source, at)
        ) is not None:  # pragma: no branch - the source ends with ">"
            at = found.end()
            name, quoted, apostrophed, bare = found.groups()
            if name is None:  # the end of the tag
                break
            attributes.append((name.lower(), quoted or apostrophed or bare or ""))
            if len(attributes) > MOST_ATTRIBUTES:
                raise TooMuchMarkup(f"has a tag with more than {MOST_ATTRIBUTES} attributes")
        self.attributes += len(attributes)
        return attributes, at

    def _pass_over(self, at: int) -> None:
        """Continue after something that only looks like a tag, at each end that a client may see."""
        if self._source.startswith("<!--", at):
            self._pass_comment(at)
            return
        self._go_on(self._closing(at + 2)[1])
        if self._source.startswith("<![CDATA[", at):
            self._go_on(self._end_of_cdata(at)[1])

    def _pass_comment(self, at: int) -> None:
        is_short = self._source.startswith((">", "->", "!>", "-!>"), at + 4)
        for start in (at + 2, at + 4) if is_short else (at + 4,):  # "<!-->" is complete for most
            self._go_on(self._end_of_comment(start)[1])
            self._go_on(self._rare_end_of_comment(start)[1])
        end, _ = self._end_of_comment(at + 4)
        if end == len(self._source):  # old clients take its start for text
            self._go_on(at + 4)
        if self._source[at + 4 : at + 7].lower() == "[if":  # Outlook reads it
            condition, inside = self._end_of_condition(at)
            if condition < end:
                self._go_on(inside)

    def _go_on(self, at: int) -> None:
        which = bisect_left(self._markup, at)
        if which < len(self._markup) and which not in self._met:
            self._met.add(which)
            heappush(self._pending, self._markup[which])
