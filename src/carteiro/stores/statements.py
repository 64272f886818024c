"""Named statements: one file a topic, each statement under a line ``-- name: its_name``.

Statements that read the same in every dialect are written once, next to the shared ports, in the Postgres dialect.
``{accepted}`` stands for a list of columns: see `carteiro.stores.columns.LISTS`.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from carteiro.stores.columns import LISTS

_SHARED = "carteiro.stores.sql"
_OF_POSTGRES = re.compile(r"\bcarteiro\.|::\w+")
_LIST = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
# A parameter, past comments and texts; neither a cast (``::text``) nor a slice (``[1:n]``).
_PARAMETER = re.compile(r"--[^\n]*|'[^']*'|(?<![:\w]):([a-z_]\w*)")


@cache
def statements_of(package: str, *, has_schema: bool = True) -> Mapping[str, str]:
    """Return the shared statements and those of a store's ``sql`` folder by name; each name is used once.

    Without a schema, as on SQLite, the shared ones lose the schema name and the casts.
    """
    found: dict[str, str] = {}
    for file in resources.files(_SHARED).iterdir():
        if file.name.endswith(".sql"):
            text = file.read_text(encoding="utf-8")
            _add(found, text if has_schema else _OF_POSTGRES.sub("", text), package)
    for file in (resources.files(package) / "sql").iterdir():
        _add(found, file.read_text(encoding="utf-8"), package)
    return dict(sorted(found.items()))


def _add(found: dict[str, str], text: str, package: str) -> None:
    _, *parts = _NAME.split(expanded(text))
    for name, statement in zip(parts[::2], parts[1::2], strict=True):
        if name in found:
            raise ValueError(f"{package}: two statements are named {name}")
        found[name] = statement.strip()


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
