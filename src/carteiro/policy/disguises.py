"""Decode what clients decode: character references, CSS escapes, white space in URLs. Pure."""

import re
from html import unescape
from html.entities import html5

IGNORED_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0]+")
_REFERENCE = re.compile(r"&(?:#(?:[0-9]+|[xX][0-9a-fA-F]+);?|[^\t\n\f <&#;]{1,32};?)")
_KNOWN_WITHOUT_END: dict[str, list[str]] = {}  # by their first two letters, the longest first
for _name in sorted(html5, key=len, reverse=True):
    if not _name.endswith(";"):
        _KNOWN_WITHOUT_END.setdefault(_name[:2], []).append(_name)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})(?:\r\n|[ \t\r\n\f])?|\n|.)", re.IGNORECASE)
_CODE_POINTS = 0x110000
_MOST_DIGITS = 7  # of a code point
_UNKNOWN = "\ufffd"
_IGNORED_BYTES = bytes([*range(0x21), 0x7F])  # those of `IGNORED_IN_URLS` in ASCII


def squeeze(text: str) -> str:
    """The text without white space and control characters, which clients ignore inside a URL."""
    if text.isascii():  # most mails: one pass
        return text.encode().translate(None, _IGNORED_BYTES).decode()
    squeezed = "".join(text.split())
    return squeezed if squeezed.isprintable() else IGNORED_IN_URLS.sub("", squeezed)


def unescape_html(text: str) -> str:
    """The text with its character references decoded, with any number of digits."""
    if "&" not in text:
        return text
    known = _References()
    return _REFERENCE.sub(lambda found: known[found[0]], text)


def decode_css(css: str) -> str:
    """The text with its CSS escapes decoded."""
    if "\\" not in css:
        return css
    known = _Escapes()
    return _CSS_ESCAPE.sub(lambda found: known[found[0]], css)


# A mail may repeat a few of them a thousand times: each is decoded once.


class _References(dict[str, str]):
    def __missing__(self, reference: str) -> str:
        name = reference[1:]
        decoded = _numbered(name[1:]) if name[0] == "#" else _named(name)
        self[reference] = decoded
        return decoded


class _Escapes(dict[str, str]):
    def __missing__(self, escape: str) -> str:
        found = _CSS_ESCAPE.fullmatch(escape)
        code = found[1] if found is not None else None
        decoded = escape[1:].replace("\n", "") if code is None else _character(int(code, 16))
        self[escape] = decoded
        return decoded


def _named(name: str) -> str:
    """The meaning of ``&name`` in the standard: the longest known prefix counts."""
    if name in html5:
        return html5[name]
    for known in _KNOWN_WITHOUT_END.get(name[:2], ()):
        if name.startswith(known):
            return html5[known] + name[len(known) :]
    return f"&{name}"


def _numbered(digits: str) -> str:
    base = 16 if digits[0] in "xX" else 10
    digits = digits.strip("xX;").lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return _UNKNOWN
    code = int(digits, base)
    return chr(code) if "\xa0" <= _character(code) < "\ud800" else unescape(f"&#{code};")


def _character(code: int) -> str:
    return chr(code) if code < _CODE_POINTS else _UNKNOWN
