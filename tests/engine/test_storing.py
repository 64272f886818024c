"""Lists are written until they are stored, and a bad item fails alone."""

import asyncio
from collections.abc import Callable

import pytest

from carteiro.engine import storing
from carteiro.engine.storing import stored
from carteiro.errors import StoreError, StoreUnavailable


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr(storing, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(storing, "LONGEST_WAIT_S", 0.0)


class Writer:
    """Doubles numbers; fails as asked, list by list."""

    def __init__(self, fails: Callable[[list[int], int], Exception | None]) -> None:
        self._fails = fails
        self.lists: list[list[int]] = []

    async def __call__(self, items: list[int]) -> list[int]:
        """Write the list, or raise."""
        self.lists.append(items)
        error = self._fails(items, len(self.lists))
        if error is not None:
            raise error
        return [2 * item for item in items]


async def test_store_that_is_down_is_asked_again_with_the_whole_list() -> None:
    """And the caller learns of each failure."""
    write = Writer(lambda _items, time: StoreUnavailable("away") if time < 3 else None)
    troubles: list[bool] = []

    answers = await stored("test", write, [1, 2], in_trouble=lambda: troubles.append(True))

    assert answers == [2, 4]
    assert write.lists == [[1, 2]] * 3
    assert troubles == [True] * 2


async def test_list_that_the_store_does_not_take_is_not_repeated() -> None:
    """One of its items is the reason: the caller writes them one by one."""
    write = Writer(lambda _items, _time: StoreError("busy"))

    assert await stored("test", write, [1, 13]) is None
    assert write.lists == [[1, 13]]


async def test_single_item_that_the_store_refuses_is_repeated() -> None:
    """It may be a lock or a deadlock: its outcome must not be dropped."""
    write = Writer(lambda _items, time: StoreError("busy") if time < 3 else None)

    assert await stored("test", write, [13], apart=True) == [26]
    assert write.lists == [[13]] * 3


async def test_single_item_that_cannot_be_written_raises_its_error() -> None:
    """It would fail for ever."""
    write = Writer(lambda _items, _time: ValueError("13"))

    with pytest.raises(ValueError, match="13"):
        await stored("test", write, [13], apart=True)


async def test_failure_is_raised_once_the_caller_gives_up() -> None:
    """A worker that stops does not wait for a store for ever."""
    given_up = asyncio.Event()
    write = Writer(lambda _items, _time: StoreUnavailable("away"))

    with pytest.raises(StoreUnavailable):
        await stored("test", write, [1], in_trouble=given_up.set, give_up=given_up)

    assert write.lists == [[1], [1]]
