"""Background tasks end, whatever their libraries do with a cancellation."""

import asyncio

import pytest

from carteiro.runtime import ending
from carteiro.runtime.ending import ended


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_AGAIN_S", 0.01)


class _Deaf:
    """Loops, and swallows a number of cancellations."""

    def __init__(self, swallows: int) -> None:
        self.left = swallows

    async def run(self) -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if not self.left:
                    raise
                self.left -= 1


async def test_task_whose_library_swallows_a_cancellation_ends() -> None:
    """Also next to one that ends at once."""
    tasks = [asyncio.create_task(_Deaf(each).run()) for each in (1, 0)]
    await asyncio.sleep(0)

    await ended(*tasks)

    assert all(each.cancelled() for each in tasks)


async def test_task_that_ignores_every_cancellation_is_not_waited_for() -> None:
    """The process is to end, with or without it."""
    deaf = _Deaf(ending._ROUNDS)
    task = asyncio.create_task(deaf.run())
    await asyncio.sleep(0)

    await ended(task)

    assert (deaf.left, task.done()) == (0, False)
    await ended(task)
