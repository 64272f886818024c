"""Named statements: one file a topic, each statement under a line ``-- name: its_name``."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statements_of(package: str) -> Mapping[str, str]:
    """Return the statements of a store's ``sql`` folder by name; a name that is used twice is an error."""
    found: dict[str, str] = {}
    for file in sorted((resources.files(package) / "sql").iterdir(), key=lambda each: each.name):
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"{package}: two statements are named {name}")
            found[name] = text.strip()
    return found
