"""Lists of any length, a page at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from carteiro.cli.printing import Column, Printer, note
from carteiro.model import Cursor, Page

Row = TypeVar("Row")
Ask: TypeAlias = Callable[[Cursor | None, int], Awaitable[Page[Row]]]

_LARGEST_PAGE = 500


class HasPrinter(Protocol):
    """Any desk."""

    @property
    def out(self) -> Printer:
        """Its printer."""
        ...


async def print_pages(
    desk: HasPrinter,
    ask: Ask[Row],
    *,
    limit: int,
    columns: Sequence[Column[Row]],
    document: Callable[[Row], Mapping[str, Any]],
) -> None:
    """Print at most ``limit`` rows (0: all), page after page; say if there are none, or more."""
    has_any = False
    async for page, is_cut in pages(ask, limit=limit):
        has_any = has_any or bool(page)
        desk.out.rows(page, columns, document)
        if is_cut:
            note("There are more: raise --limit, or use --limit 0 for all.")
    if not has_any:
        desk.out.none()


async def pages(ask: Ask[Row], *, limit: int) -> AsyncIterator[tuple[list[Row], bool]]:
    """Pages of at most ``limit`` rows together (0: all); the last one says if rows were left out."""
    left, cursor = limit, None
    while True:
        size = min(left, _LARGEST_PAGE) if limit else _LARGEST_PAGE
        page = await ask(cursor, size)
        left, cursor = left - len(page.rows), page.next
        is_full = bool(limit) and left <= 0
        yield page.rows, is_full and cursor is not None
        if is_full or cursor is None:
            return
