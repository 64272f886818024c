"""Fair thread: tenants take turns in a thread, and slices of work yield to the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from carteiro.policy.addresses import judge_address
from carteiro.runtime.fair_thread import Slice, Turns


async def test_every_tenant_has_a_turn_before_any_has_a_second_one() -> None:
    """A tenant with a hundred calls waits for the others between its own calls."""
    done: list[str] = []
    begin = Event()

    def work(who: str) -> Callable[[], None]:
        return lambda: done.append(who)

    with ThreadPoolExecutor(1) as thread:
        turns = Turns(thread)
        held = asyncio.create_task(turns.take("busy", begin.wait))
        asked = [turns.take("busy", work("busy")) for _ in range(100)]
        asked += [turns.take(who, work(who)) for who in ("quick", "late") for _ in range(2)]
        waiting = [asyncio.create_task(each) for each in asked]
        await asyncio.sleep(0)
        begin.set()
        await asyncio.gather(held, *waiting)

    assert done[:6] == ["busy", "quick", "late", "busy", "quick", "late"]
    assert done[6:] == ["busy"] * 98


async def test_failure_reaches_only_its_caller() -> None:
    """The next caller has its turn all the same."""

    def fail() -> None:
        raise ValueError("of its own")

    with ThreadPoolExecutor(1) as thread:
        turns = Turns(thread)
        failed, done = await asyncio.gather(
            turns.take("a", fail), turns.take("a", lambda: "done"), return_exceptions=True
        )

    assert isinstance(failed, ValueError)
    assert done == "done"


async def test_work_of_a_cancelled_caller_is_not_begun() -> None:
    done: list[str] = []
    begin = Event()

    with ThreadPoolExecutor(1) as thread:
        turns = Turns(thread)
        held = asyncio.create_task(turns.take("a", begin.wait))
        left = asyncio.create_task(turns.take("b", lambda: done.append("left")))
        stays = asyncio.create_task(turns.take("c", lambda: done.append("stays")))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        begin.set()
        await asyncio.gather(held, stays)

    assert done == ["stays"]


async def _gave_a_turn(some: Slice, size: int = 0) -> bool:
    """True if the event loop ran others after an item of this size."""
    loop = asyncio.get_running_loop()
    others = loop.create_future()
    loop.call_soon(others.set_result, None)
    if some.spend(size):
        await some.pause()
    return others.done()


@pytest.mark.parametrize(("size", "items"), [(0, 20), (4096, 16), (70_000, 1)])
async def test_slice_ends_after_a_number_of_items_or_bytes(size: int, items: int) -> None:
    """The next slice begins at zero."""
    some = Slice()

    turns = [await _gave_a_turn(some, size) for _ in range(2 * items)]

    assert turns == ([False] * (items - 1) + [True]) * 2


async def test_slice_ends_after_some_unusual_addresses() -> None:
    """They cost as much as many items."""
    some = Slice()
    turns = []

    for number in range(10):
        judge_address(f"ana@exämple-{number}-of-a-slice.com")
        turns.append(await _gave_a_turn(some))

    assert turns == [False] * 9 + [True]
