"""Lists as the server reads them: one text each, which it takes apart itself.

The driver's own way looks at every element whether it is a list again, and costs the client several
times as much.
"""

from collections.abc import Iterable, Sequence


def numbers(values: Iterable[int | None]) -> str:
    """A list of numbers or truth values."""
    return "{" + ",".join(["NULL" if each is None else str(each) for each in values]) + "}"


def texts(values: Iterable[str | None]) -> str:
    """A list of texts, or of JSON."""
    return "{" + ",".join(["NULL" if each is None else _quoted(each) for each in values]) + "}"


def few_texts(values: Sequence[str | None]) -> str:
    """As `texts`, empty where there is none at all: beside longer lists `unnest` fills it up with NULL."""
    return "{}" if values.count(None) == len(values) else texts(values)


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
