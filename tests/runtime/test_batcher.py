"""The gatherer: many callers, few writes, and nobody waits for a batch to fill."""

import asyncio
from dataclasses import dataclass, field

import pytest

from carteiro.errors import StoreUnavailable
from carteiro.runtime.batcher import MOST_BYTES, MOST_ITEMS, Gatherer


@dataclass
class Writer:
    """Writes lists of numbers; while ``gate`` is closed a write takes its time."""

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
        """How long each list was."""
        return [len(items) for items in self.lists]


def an_open_writer(*, bad: frozenset[int] = frozenset()) -> Writer:
    """A writer that answers at once."""
    writer = Writer(bad=bad)
    writer.gate.set()
    return writer


async def asked(gatherer: Gatherer[int, str], items: range) -> list["asyncio.Future[str]"]:
    """Ask for each item at once, and let the first list go out."""
    tasks = [asyncio.ensure_future(gatherer(item)) for item in items]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_one_caller_is_written_at_once() -> None:
    """There is no timer: a list of one goes out alone."""
    writer = an_open_writer()

    assert await Gatherer(writer.write)(7) == "7"
    assert writer.lists == [[7]]


async def test_what_comes_while_a_list_is_written_is_the_next_list() -> None:
    """All that came together meanwhile goes out as one, in the order it came."""
    writer = Writer()
    gatherer = Gatherer(writer.write)
    first = await asked(gatherer, range(1))
    later = await asked(gatherer, range(1, 6))

    writer.gate.set()

    assert await asyncio.gather(*first, *later) == ["0", "1", "2", "3", "4", "5"]
    assert writer.lists == [[0], [1, 2, 3, 4, 5]]


async def test_it_goes_on_after_a_pause() -> None:
    """A gatherer that had nothing to write writes again."""
    writer = an_open_writer()
    gatherer = Gatherer(writer.write)

    await gatherer(1)
    await asyncio.sleep(0)

    assert await gatherer(2) == "2"


async def test_a_list_has_a_bounded_number_of_items() -> None:
    """A burst is cut into lists that a store can bear."""
    writer = an_open_writer()

    await asyncio.gather(*await asked(Gatherer(writer.write), range(2 * MOST_ITEMS + 1)))

    assert sorted(writer.sizes, reverse=True) == [MOST_ITEMS, MOST_ITEMS, 1]


async def test_a_list_has_a_bounded_weight() -> None:
    """Large items make short lists; an item that is too large for any list goes alone."""
    writer = an_open_writer()
    gatherer = Gatherer(writer.write, size=lambda item: item * MOST_BYTES // 4)

    await asyncio.gather(*[gatherer(weight) for weight in (2, 2, 1, 9, 1, 1)])

    assert writer.lists == [[2, 2], [1], [9], [1, 1]]


async def test_one_bad_item_fails_alone() -> None:
    """A list that fails is written again item by item."""
    writer = an_open_writer(bad=frozenset({2}))
    gatherer = Gatherer(writer.write)

    answers = await asyncio.gather(*[gatherer(item) for item in range(4)], return_exceptions=True)

    assert [answers[0], answers[1], answers[3]] == ["0", "1", "3"]
    assert isinstance(answers[2], ValueError)
    assert writer.lists == [[0, 1, 2, 3], [0], [1], [2], [3]]


async def test_a_single_item_that_fails_is_not_written_again() -> None:
    """Its caller is told, and decides."""
    writer = an_open_writer(bad=frozenset({1}))

    with pytest.raises(ValueError, match="bad"):
        await Gatherer(writer.write)(1)
    assert writer.lists == [[1]]


async def test_a_failure_does_not_hold_up_what_came_meanwhile() -> None:
    """The next list goes out as if nothing had happened."""
    writer = Writer(bad=frozenset({0}))
    gatherer = Gatherer(writer.write)
    [bad] = await asked(gatherer, range(1))
    good = await asked(gatherer, range(1, 3))

    writer.gate.set()

    assert await asyncio.gather(*good) == ["1", "2"]
    assert isinstance((await asyncio.gather(bad, return_exceptions=True))[0], ValueError)


@pytest.mark.parametrize("bad", [frozenset[int](), frozenset({1, 2})])
async def test_a_cancelled_caller_cancels_nothing(bad: frozenset[int]) -> None:
    """Its item is written, and the others of its list get their answers, or their failures."""
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


async def test_the_first_caller_may_go_while_its_list_is_written() -> None:
    """The write belongs to nobody: it goes on, and what waits behind it is written too."""
    writer = Writer()
    gatherer = Gatherer(writer.write)
    [gone] = await asked(gatherer, range(1))
    [stays] = await asked(gatherer, range(1, 2))

    gone.cancel()
    await asyncio.sleep(0)
    writer.gate.set()

    assert await stays == "1"
    assert writer.lists == [[0], [1]]


async def test_beyond_its_bound_a_caller_is_told_to_come_again() -> None:
    """Nothing of it is kept; when there is room again it is welcome."""
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


async def test_drained_means_that_all_is_written() -> None:
    """Also what nobody waits for any more, and what comes while it drains."""
    writer = Writer()
    gatherer = Gatherer(writer.write)
    await gatherer.drained()
    [gone, *_] = await asked(gatherer, range(1))
    gone.cancel()
    draining = asyncio.create_task(gatherer.drained())
    [later] = await asked(gatherer, range(1, 2))

    assert not draining.done()
    writer.gate.set()
    await draining

    assert writer.lists == [[0], [1]]
    assert await later == "1"


async def test_a_store_that_is_away_is_asked_once_for_the_whole_list() -> None:
    """Each item by itself would wait as long again: a minute for every dozen."""
    lists: list[int] = []

    async def away(items: list[int]) -> list[str]:
        lists.append(len(items))
        raise StoreUnavailable("locked")

    asked_for = await asked(Gatherer(away), range(20))
    answers = await asyncio.gather(*asked_for, return_exceptions=True)

    assert lists == [20]
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
