"""Suppressions, listed: pages follow each other without gaps or duplicates."""

from datetime import timedelta

import pytest

from carteiro.errors import BadCursor
from carteiro.model import Cursor, NewSuppression, SuppressionReason
from carteiro.ports import Backend
from support.builders import ACME
from support.clock import StoreClock


async def _pages(backend: Backend, limit: int) -> list[str | None]:
    found: list[str | None] = []
    cursor: Cursor | None = None
    while True:
        page = await backend.suppressions.list(ACME, cursor=cursor, limit=limit)
        found += [each.address for each in page.rows]
        cursor = page.next
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_hold_each_one_once_newest_first(
    backend: Backend, clock: StoreClock, limit: int
) -> None:
    """Also where several were put at the same moment."""
    for day in range(3):
        some = [
            NewSuppression(f"{day}{name}@example.com", SuppressionReason.MANUAL) for name in "abc"
        ]
        await backend.suppressions.put(some[: 3 - day], tenant=ACME)
        clock.advance(timedelta(days=1))

    found = await _pages(backend, limit)

    assert sorted(found) == sorted(  # type: ignore[type-var]
        f"{each}@example.com" for each in ("0a", "0b", "0c", "1a", "1b", "2a")
    )
    assert [str(each)[0] for each in found] == ["2", "1", "1", "0", "0", "0"]


async def test_cursor_of_another_list_is_refused(backend: Backend) -> None:
    with pytest.raises(BadCursor):
        await backend.suppressions.list(ACME, cursor=Cursor("nonsense"))
