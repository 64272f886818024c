"""The members of an object of JSON as bytes: some are replaced, all others stay digit for digit.

Pure. Who reads numbers and writes them again loses digits: those beyond 64 bits become floats, and floats
are rounded. Bytes are given here only after they were found to be an object of JSON.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

import orjson

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(_STRING + rb"|[{}\[\],]", re.DOTALL)
_NUMBER = re.compile(_STRING + rb"|(-?[0-9][-+.0-9eE]*+)", re.DOTALL)
_ALWAYS_EXACT = re.compile(rb"-?[0-9.]{1,15}")  # a float has these digits in any case


def with_members(body: bytes, put: Mapping[str, bytes], *, without: str) -> bytes:
    """The object with these members, as JSON, and without that one; what is new stands at the end."""
    found = [(name, text) for name, text in _members(body) if name != without]
    names = {name for name, _ in found}
    new = [_member(name, put[name]) for name in put if name not in names]
    kept = [_member(name, put[name]) if name in put else text for name, text in found]
    return b"{%b}" % b",".join([*kept, *new])


def is_exact(body: bytes) -> bool:
    """Return True if every number in it stays what it is when it is read and written again."""
    return all(_stays(found[1]) for found in _NUMBER.finditer(body) if found[1])


def _members(body: bytes) -> Iterator[tuple[str, bytes]]:
    depth, start = 0, 0
    name: str | None = None
    for found in _TOKEN.finditer(body):
        token = found[0]
        if token[:1] == b'"':
            name = orjson.loads(token) if depth == 1 and name is None else name
            continue
        if depth == 1 and token in b",}" and name is not None:
            yield name, body[start : found.start()].strip()
        if depth == 1 and token == b",":
            start, name = found.end(), None
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token, 0)
        if depth == 1 and not start:
            start = found.end()


def _member(name: str, text: bytes) -> bytes:
    return b"%b:%b" % (orjson.dumps(name), text)


def _stays(number: bytes) -> bool:
    if _ALWAYS_EXACT.fullmatch(number):
        return True
    try:
        return Decimal(repr(orjson.loads(number))) == Decimal(number.decode())
    except InvalidOperation:  # an exponent that no float has
        return False
