"""Named statements: one file a topic, each statement under a line ``-- name: its_name``.

Statements that read the same in every dialect are written once, next to the shared ports, in the Postgres dialect. A
statement of one dialect is under ``-- name: its_name (sqlite)``: there, or in a file of its store.
``{accepted}`` stands for a list of columns: see `carteiro.stores.columns.LISTS`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from carteiro.stores.columns import LISTS

_SHARED = "carteiro.stores.sql"
_OF_POSTGRES = re.compile(r"\bcarteiro\.|::\w+")
_LIST = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"^-- name: (\w+)(?: \((\w+)\))?\n", re.MULTILINE)
# A parameter, past comments and texts; neither a cast (``::text``) nor a slice (``[1:n]``).
_PARAMETER = re.compile(r"--[^\n]*|'[^']*'|(?<![:\w]):([a-z_]\w*)")


@cache
def statements_of(package: str, *, has_schema: bool = True) -> Mapping[str, str]:
    """Return the shared statements and those of a store's ``sql`` folder by name; each name is used once.

    Without a schema, as on SQLite, the shared ones lose the schema name and the casts.
    """
    own = package.rpartition(".")[2]
    found: dict[str, str] = {}
    for folder in resources.files(_SHARED), resources.files(package) / "sql":
        for name, statement in _statements_in(folder, own):
            if name in found:
                raise ValueError(f"{package}: two statements are named {name}")
            found[name] = statement
    if not has_schema:
        found = {name: _OF_POSTGRES.sub("", each) for name, each in found.items()}
    return dict(sorted(found.items()))


def _statements_in(folder: Traversable, own: str) -> Iterator[tuple[str, str]]:
    """Name and text of the statements of every dialect, and of one's ``own``."""
    for file in folder.iterdir():
        if file.name.endswith(".sql"):
            _, *parts = _NAME.split(expanded(file.read_text("utf-8")))
            for name, dialect, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
                if dialect in {None, own}:
                    yield name, text.strip()


def expanded(text: str) -> str:
    """Put in the lists of columns that stand in braces."""
    return _LIST.sub(lambda found: LISTS[found[1]], text)


def numbered(statement: str) -> tuple[str, list[str]]:
    """Replace the named parameters of a statement by ``$1`` …; return the names in that order, too."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if not (name := found[1]):
            return found[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PARAMETER.sub(number, statement), names
