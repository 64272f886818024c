"""Lists as array literals: one text each, which the server parses.

The driver's own encoding checks whether each element is a list, and costs the client several times as much.
"""

from collections.abc import Iterable, Sequence


def numbers(values: Iterable[int | None]) -> str:
    """A list of numbers or truth values."""
    return "{" + ",".join(["NULL" if each is None else str(each) for each in values]) + "}"


def texts(values: Iterable[str | None]) -> str:
    """A list of texts, or of JSON."""
    return "{" + ",".join(["NULL" if each is None else _quoted(each) for each in values]) + "}"


def few_texts(values: Sequence[str | None]) -> str:
    """As `texts`, but empty if every element is None: `unnest` pads it with NULL to the length of the other lists."""
    return "{}" if values.count(None) == len(values) else texts(values)


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
