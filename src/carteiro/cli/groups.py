"""Dead letters, counted by a field."""

from collections.abc import Sequence

from carteiro.cli.documents import document_of
from carteiro.cli.printing import Column, Printer
from carteiro.model import DeadGroup

COLUMNS: tuple[Column[DeadGroup], ...] = (
    Column("group", lambda row: row.key or "(none)", is_whole=True),
    Column("count", lambda row: row.count),
    Column("oldest", lambda row: row.oldest, is_whole=True),
    Column("newest", lambda row: row.newest, is_whole=True),
)


def print_groups(out: Printer, by: str, groups: Sequence[DeadGroup], *, what: str) -> None:
    """Print each group, and say if there are none of ``what``."""
    out.rows(groups, COLUMNS, lambda row: {"by": by} | document_of(row), what=what)
