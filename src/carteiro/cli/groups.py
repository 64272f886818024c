"""Dead letters, counted by a field."""

from collections.abc import Mapping, Sequence

from carteiro.cli.documents import document_of
from carteiro.cli.printing import Column, Printer
from carteiro.model import DeadGroup


def columns(by: str, causes: Mapping[str, str] | None = None) -> tuple[Column[DeadGroup], ...]:
    """A group by its value of a field; ``causes``: failure groups in words."""
    found = (
        Column[DeadGroup](by, lambda row: row.key or "(none)", is_whole=True),
        Column[DeadGroup]("count", lambda row: row.count),
        Column[DeadGroup]("oldest", lambda row: row.oldest, is_whole=True),
        Column[DeadGroup]("newest", lambda row: row.newest, is_whole=True),
    )
    if causes is None:
        return found
    return *found, Column[DeadGroup]("cause", lambda row: causes.get(row.key))


def print_groups(
    out: Printer,
    by: str,
    groups: Sequence[DeadGroup],
    *,
    what: str,
    causes: Mapping[str, str] | None = None,
) -> None:
    """Print each group, and say if there are none of ``what``."""
    out.rows(groups, columns(by, causes), lambda row: {"by": by} | document_of(row), what=what)
