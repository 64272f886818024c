"""Recipients, listed: pages follow each other without gaps or duplicates, with any additions meanwhile."""

from typing import Any

import pytest

from carteiro.errors import BadCursor
from carteiro.model import Cursor, NewRecipient, RecipientId
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import MILLISECOND, StoreClock
from support.steps import accepted_recipient

ANA = NewRecipient("ana@example.com", external_id="ana")


async def _ids(backend: Backend, *, limit: int = 100, **wanted: Any) -> list[RecipientId]:
    """Every page, one behind the other; ``wanted`` are the filters of `list`."""
    ids: list[RecipientId] = []
    cursor: Cursor | None = None
    while True:
        page = await backend.recipients.list(ACME, cursor=cursor, limit=limit, **wanted)
        ids += [each.id for each in page.rows]
        if page.next is None:
            return ids
        cursor = page.next


async def _people(backend: Backend, clock: StoreClock, count: int) -> list[RecipientId]:
    """This many recipients, always two of them at the same moment."""
    known = []
    for index in range(count):
        told = NewRecipient(f"person{index}@example.com", external_id=f"p{index}")
        known.append(await accepted_recipient(backend, told))
        clock.advance(index % 2 * MILLISECOND)
    return known


async def test_pages_of_any_size_give_them_all(backend: Backend, clock: StoreClock) -> None:
    """Newest first, and of the same moment in a fixed order."""
    known = await _people(backend, clock, 5)

    ids = await _ids(backend)

    assert [await _ids(backend, limit=each) for each in (1, 2, 3, 5, 100)] == [ids] * 5
    assert sorted(ids) == sorted(known)
    assert ids[0] == known[4]
    assert set(ids[3:]) == set(known[:2])


async def test_new_recipients_move_no_page(backend: Backend, clock: StoreClock) -> None:
    """A page starts behind a recipient, not after a number of them."""
    known = await _people(backend, clock, 4)
    clock.advance(MILLISECOND)
    first = await backend.recipients.list(ACME, limit=2)
    await _people(backend, clock, 1)
    await accepted_recipient(backend, NewRecipient("new@example.com"))

    second = await backend.recipients.list(ACME, cursor=first.next, limit=2)

    assert {each.id for each in second.rows} == set(known[:2])
    assert second.next is None


async def test_recipients_are_found_by_external_id_and_address(backend: Backend) -> None:
    """Both count, if both are given; of the own tenant alone."""
    ana = await accepted_recipient(backend, ANA)
    bia = await accepted_recipient(backend, NewRecipient("ana@example.com", external_id="bia"))
    await accepted_recipient(backend, ANA, BRASA)

    assert await _ids(backend, external_id="ana") == [ana]
    assert sorted(await _ids(backend, email="ana@example.com")) == sorted([ana, bia])
    assert await _ids(backend, email="ana@example.com", external_id="bia") == [bia]
    assert await _ids(backend, email="bia@example.com") == []


async def test_deleted_recipients_are_listed(backend: Backend, clock: StoreClock) -> None:
    """With their time, next to their successors under the same name."""
    first = await accepted_recipient(backend, ANA)
    await backend.recipients.delete(first, tenant=ACME)
    clock.advance(MILLISECOND)
    second = await accepted_recipient(backend, ANA)

    assert await _ids(backend, external_id="ana") == [second, first]


async def test_a_made_up_cursor_is_refused(backend: Backend) -> None:
    """Nothing, a number in place of an id, and an id that no store can hold."""
    for cursor in ("", "WzEsMl0", "WzEsIlx1MDAwMCJd"):
        with pytest.raises(BadCursor):
            await backend.recipients.list(ACME, cursor=Cursor(cursor))
