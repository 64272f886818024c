"""Lists as array literals: one text each, which the server parses.

The driver's own encoding checks whether each element is a list, and costs the client several times as much.
"""

from collections.abc import Sequence

import orjson


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
    """As `texts`, but empty if every element is None: `unnest` pads it with NULL to the length of the other lists."""
    return "{}" if values.count(None) == len(values) else texts(values)


def _quoted(values: Sequence[str | None]) -> str:
    escaped = [each and each.replace("\\", "\\\\").replace('"', '\\"') for each in values]
    return "{" + ",".join(["NULL" if each is None else f'"{each}"' for each in escaped]) + "}"
