"""Lists of any length, a page at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from carteiro.cli.printing import Column, Printer, note
from carteiro.cli.progress import count_done
from carteiro.model import Cursor, Erased, Page

Row = TypeVar("Row")

_LARGEST_PAGE = 500
_A_MOMENT_S = 0.5


class Ask(Protocol[Row]):
    """Any list of a store: a page from the cursor on."""

    def __call__(self, *, cursor: Cursor | None, limit: int) -> Awaitable[Page[Row]]:
        """At most this many rows."""


async def print_pages(  # noqa: PLR0913 - what to list, and how
    out: Printer,
    ask: Ask[Row],
    columns: Sequence[Column[Row]],
    document: Callable[[Row], Mapping[str, Any]],
    *,
    what: str,
    limit: int,
) -> None:
    """Print at most ``limit`` rows (0: all), page after page; say if there are none of ``what``, or more."""
    has_any = False
    async for page, is_cut in pages(ask, limit=limit):
        has_any = has_any or bool(page)
        out.rows(page, columns, document)
        if is_cut:
            note("There are more: raise --limit, or use --limit 0 for all.")
    if not has_any:
        out.none(what)


async def pages(ask: Ask[Row], *, limit: int) -> AsyncIterator[tuple[list[Row], bool]]:
    """Pages of at most ``limit`` rows together (0: all); the last one says if rows were left out."""
    left, cursor = limit, None
    while True:
        size = min(left, _LARGEST_PAGE) if limit else _LARGEST_PAGE
        page = await ask(cursor=cursor, limit=size)
        left, cursor = left - len(page.rows), page.next
        is_full = bool(limit) and left <= 0
        yield page.rows, is_full and cursor is not None
        if is_full or cursor is None:
            return


async def page_by_page(
    what: str, ask: Ask[Row], work: Callable[[list[Row]], Awaitable[int]]
) -> int:
    """Work on all rows, a page at a time; report and return the number that the work is ``what`` with."""
    count = 0
    with count_done(what) as tell:
        async for page, _ in pages(ask, limit=0):
            count += await work(page)
            tell(count)
    return count


async def erased_in_pages(erase: Callable[[], Awaitable[Erased | None]]) -> tuple[int, int]:
    """Erase until nothing is left, waiting for messages in flight; the numbers of messages and recipients."""
    messages = recipients = 0
    with count_done("messages erased") as tell:
        while (page := await erase()) is not None:
            messages, recipients = messages + page.messages, recipients + page.recipients
            tell(messages)
            if not page.has_more:
                break
            await asyncio.sleep(0 if page.messages else _A_MOMENT_S)
    return messages, recipients
