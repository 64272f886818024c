"""Batcher: many callers share few writes, and no caller waits for a batch to fill."""

import asyncio
from dataclasses import dataclass, field

import pytest

from carteiro.errors import StoreUnavailable
from carteiro.runtime.batcher import MOST_BYTES, MOST_ITEMS, Gatherer


@dataclass
class Writer:
    """Writes lists of numbers; while ``gate`` is closed, a write blocks."""

    lists: list[list[int]] = field(default_factory=list)
    bad: frozenset[int] = frozenset()
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, items: list[int]) -> list[str]:
        """Answer each number with its text; a bad one fails its whole list."""
        self.lists.append(items)
        await self.gate.wait()
        if self.bad.intersection(items):
            raise ValueError(f"bad: {sorted(self.bad.intersection(items))}")
        return [str(item) for item in items]

    @property
    def sizes(self) -> list[int]:
        """Length of each written list."""
        return [len(items) for items in self.lists]


def an_open_writer(*, bad: frozenset[int] = frozenset()) -> Writer:
    writer = Writer(bad=bad)
    writer.gate.set()
    return writer


async def asked(gatherer: Gatherer[int, str], items: range) -> list["asyncio.Future[str]"]:
    """Submit all items at once, and let the first batch start."""
    tasks = [asyncio.ensure_future(gatherer(item)) for item in items]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_single_item_is_written_at_once() -> None:
    """There is no timer: a batch of one goes out alone."""
    writer = an_open_writer()

    assert await Gatherer(writer.write)(7) == "7"
    assert writer.lists == [[7]]


async def test_items_that_arrive_during_a_write_form_the_next_batch() -> None:
    """They go out as one batch, in order of arrival."""
    writer = Writer()
    gatherer = Gatherer(writer.write)
    first = await asked(gatherer, range(1))
    later = await asked(gatherer, range(1, 6))

    writer.gate.set()

    assert await asyncio.gather(*first, *later) == ["0", "1", "2", "3", "4", "5"]
    assert writer.lists == [[0], [1, 2, 3, 4, 5]]


async def test_batcher_writes_again_after_a_pause() -> None:
    writer = an_open_writer()
    gatherer = Gatherer(writer.write)

    await gatherer(1)
    await asyncio.sleep(0)

    assert await gatherer(2) == "2"


async def test_batch_has_a_bounded_number_of_items() -> None:
    """A burst is split into batches that a store can take."""
    writer = an_open_writer()

    await asyncio.gather(*await asked(Gatherer(writer.write), range(2 * MOST_ITEMS + 1)))

    assert sorted(writer.sizes, reverse=True) == [MOST_ITEMS, MOST_ITEMS, 1]


async def test_batch_has_a_bounded_weight() -> None:
    """Large items make short batches; an item too large for any batch goes alone."""
    writer = an_open_writer()
    gatherer = Gatherer(writer.write, size=lambda item: item * MOST_BYTES // 4)

    await asyncio.gather(*[gatherer(weight) for weight in (2, 2, 1, 9, 1, 1)])

    assert writer.lists == [[2, 2], [1], [9], [1, 1]]


async def test_tenants_take_turns_when_not_everything_fits() -> None:
    """An item of one waits behind one item of each other, not behind all of them; each keeps its own order."""
    writer = Writer()
    gatherer = Gatherer(writer.write, size=lambda _: MOST_BYTES // 4, whose=lambda item: item // 10)
    first = await asked(gatherer, range(1))
    crowd = await asked(gatherer, range(10, 20))
    late = [*await asked(gatherer, range(20, 21)), *await asked(gatherer, range(30, 32))]

    writer.gate.set()
    await asyncio.gather(*first, *crowd, *late)

    assert writer.lists == [[0], [10, 20, 30, 11], [31, 12, 13, 14], [15, 16, 17, 18], [19]]


async def test_turns_are_counted_in_bytes() -> None:
    """Many small items of one tenant go before the second large one of another."""
    writer = Writer()
    gatherer = Gatherer(
        writer.write,
        size=lambda item: MOST_BYTES // 2 if item < 20 else 1,
        whose=lambda item: item // 10,
    )
    first = await asked(gatherer, range(1))
    large = await asked(gatherer, range(10, 14))
    small = await asked(gatherer, range(20, 25))

    writer.gate.set()
    await asyncio.gather(*first, *large, *small)

    assert writer.lists == [[0], [10, 20, 21, 22, 23, 24], [11, 12], [13]]


async def test_list_of_small_items_may_be_longer() -> None:
    """Each list costs a look at all that wait."""
    writer = an_open_writer()
    gatherer = Gatherer(writer.write, size=lambda _: MOST_BYTES // 100)

    await asyncio.gather(*[gatherer(item) for item in range(300)])

    assert writer.sizes == [300]


async def test_large_item_is_not_passed_over_for_ever() -> None:
    """The next item of a tenant waits behind one of each other, however large it is."""
    writer = Writer()
    gatherer = Gatherer(writer.write, size=lambda item: item, whose=lambda item: item)
    first = await asked(gatherer, range(1))
    waiting = [asyncio.ensure_future(gatherer(each)) for each in (5, 2 * MOST_BYTES, 6, 7)]

    writer.gate.set()
    await asyncio.gather(*first, *waiting)

    assert writer.lists == [[0], [5], [2 * MOST_BYTES], [6, 7]]


async def test_one_bad_item_fails_alone() -> None:
    """A batch that fails is written again item by item."""
    writer = an_open_writer(bad=frozenset({2}))
    gatherer = Gatherer(writer.write)

    answers = await asyncio.gather(*[gatherer(item) for item in range(4)], return_exceptions=True)

    assert [answers[0], answers[1], answers[3]] == ["0", "1", "3"]
    assert isinstance(answers[2], ValueError)
    assert writer.lists == [[0, 1, 2, 3], [0], [1], [2], [3]]


async def test_single_item_that_fails_is_not_retried() -> None:
    """Its caller gets the error, and decides."""
    writer = an_open_writer(bad=frozenset({1}))

    with pytest.raises(ValueError, match="bad"):
        await Gatherer(writer.write)(1)
    assert writer.lists == [[1]]


async def test_failed_batch_does_not_block_the_next_batch() -> None:
    writer = Writer(bad=frozenset({0}))
    gatherer = Gatherer(writer.write)
    [bad] = await asked(gatherer, range(1))
    good = await asked(gatherer, range(1, 3))

    writer.gate.set()

    assert await asyncio.gather(*good) == ["1", "2"]
    assert isinstance((await asyncio.gather(bad, return_exceptions=True))[0], ValueError)


@pytest.mark.parametrize("bad", [frozenset[int](), frozenset({1, 2})])
async def test_cancelled_caller_cancels_no_write(bad: frozenset[int]) -> None:
    """Its item is written, and the others of its batch get their results or errors."""
    writer = Writer(bad=bad)
    gatherer = Gatherer(writer.write)
    [first] = await asked(gatherer, range(1))
    [gone, stays] = await asked(gatherer, range(1, 3))

    gone.cancel()
    writer.gate.set()
    answers = await asyncio.gather(first, gone, stays, return_exceptions=True)

    assert answers[0] == "0"
    assert isinstance(answers[1], asyncio.CancelledError)
    assert isinstance(answers[2], ValueError) if bad else answers[2] == "2"
    assert writer.lists[1] == [1, 2]


async def test_first_caller_may_leave_while_its_batch_is_written() -> None:
    """The write does not belong to it; batches behind it are written too."""
    writer = Writer()
    gatherer = Gatherer(writer.write)
    [gone] = await asked(gatherer, range(1))
    [stays] = await asked(gatherer, range(1, 2))

    gone.cancel()
    await asyncio.sleep(0)
    writer.gate.set()

    assert await stays == "1"
    assert writer.lists == [[0], [1]]


async def test_full_batcher_refuses_a_caller() -> None:
    """Nothing of the refused call is kept; it may retry when there is room."""
    writer = Writer()
    gatherer = Gatherer(writer.write, bound=2)
    first = await asked(gatherer, range(1))
    waiting = await asked(gatherer, range(1, 3))

    with pytest.raises(StoreUnavailable, match="try again"):
        await gatherer(3)
    writer.gate.set()

    assert await asyncio.gather(*first, *waiting) == ["0", "1", "2"]
    assert await gatherer(4) == "4"
    assert writer.lists == [[0], [1, 2], [4]]


async def test_unreachable_store_is_called_once_for_the_whole_batch() -> None:
    """One call per item would add up the timeouts: a minute for every dozen."""
    lists: list[int] = []

    async def away(items: list[int]) -> list[str]:
        lists.append(len(items))
        raise StoreUnavailable("locked")

    asked_for = await asked(Gatherer(away), range(20))
    answers = await asyncio.gather(*asked_for, return_exceptions=True)

    assert lists == [20]
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
