"""Lists as array literals: one text each, which the server parses.

The driver's own encoding checks whether each element is a list, and costs the client several times as much.
"""

from collections.abc import Sequence
from typing import TypeVar
from uuid import uuid4

import orjson

_MARK = "\x1f"  # JSON escapes it

Value = TypeVar("Value")


def numbers(values: Sequence[int | None]) -> str:
    """A list of numbers or truth values."""
    return f"{{{orjson.dumps(values)[1:-1].decode()}}}"


def texts(values: Sequence[str | None]) -> str:
    """A list of texts, or of JSON.

    A list in JSON is such a literal as long as it escapes nothing but quotes and backslashes.
    """
    try:
        said = orjson.dumps(values)[1:-1].decode()
    except orjson.JSONEncodeError:  # half a character: the driver reports it
        return _quoted(values)
    if "\\" in said and "\\" in said.replace(r"\\", "").replace(r"\"", ""):
        return _quoted(values)
    return f"{{{said}}}"


def few_texts(values: Sequence[str | None]) -> str:
    """As `texts`, but empty if every element is None: elements beyond the end of a list are NULL."""
    return "{}" if values.count(None) == len(values) else texts(values)


def once(values: list[Value]) -> list[Value]:
    """The value that all have in common, alone; else all: see the function `carteiro.spread`."""
    return values[:1] if values and values.count(values[0]) == len(values) else values


def joined(values: Sequence[str]) -> tuple[str, str]:
    """Long texts as one, and the mark between them: `string_to_array` takes a fifth of the time of a literal."""
    if True not in [_MARK in each for each in values]:  # looking is quick, `count` is not
        return _MARK.join(values), _MARK
    mark = f"{_MARK}{uuid4()}"  # in none of them
    return mark.join(values), mark


def _quoted(values: Sequence[str | None]) -> str:
    escaped = [each and each.replace("\\", "\\\\").replace('"', '\\"') for each in values]
    return "{" + ",".join(["NULL" if each is None else f'"{each}"' for each in escaped]) + "}"
