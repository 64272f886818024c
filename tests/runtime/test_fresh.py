"""Cache of answers that are at most a few seconds old."""

from collections.abc import Collection

from carteiro.runtime.fresh import FRESH_FOR, Fresh


class Source:
    """Doubles numbers; it does not know odd ones."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked: list[list[int]] = []

    async def ask(self, names: Collection[int]) -> dict[int, int]:
        self.asked.append([*names])
        return {each: 2 * each for each in names if each % 2 == 0}

    def clock(self) -> float:
        """The time that the test has set."""
        return self.now


async def test_fresh_answer_is_cached() -> None:
    """Only names that are missing or too old are queried, all in one call."""
    source = Source()
    cache = Fresh(source.ask, clock=source.clock)

    answers = [await cache.find([2]), await cache.find([2, 4, 6])]
    source.now += FRESH_FOR.total_seconds()
    answers.append(await cache.find([4]))

    assert answers == [{2: 4}, {2: 4, 4: 8, 6: 12}, {4: 8}]
    assert source.asked == [[2], [4, 6], [4]]


async def test_unknown_name_is_queried_each_time() -> None:
    """It may exist a moment later."""
    source = Source()
    cache = Fresh(source.ask)

    assert [await cache.find([1]), await cache.find([1, 2])] == [{}, {2: 4}]
    assert source.asked == [[1], [1, 2]]


async def test_forgotten_name_is_queried_again() -> None:
    """One name, or all of them."""
    source = Source()
    cache = Fresh(source.ask)
    await cache.find([2, 4])

    cache.forget(2)
    await cache.find([2, 4])
    cache.clear()
    await cache.find([2, 4])

    assert source.asked == [[2, 4], [2], [2, 4]]


async def test_cache_is_bounded() -> None:
    """Names that come and go do not fill the memory."""
    source = Source()
    cache = Fresh(source.ask, most=2)
    await cache.find([2, 4])

    await cache.find([6])
    await cache.find([2])

    assert source.asked == [[2, 4], [6], [2]]
