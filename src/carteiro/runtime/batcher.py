"""The batcher: items of many callers are written as lists, without a timer.

While one list is written, callers queue up; the next list is everything that arrived meanwhile.
No caller waits for a batch to fill. If that is more than fits, tenants take turns, by bytes.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import KW_ONLY, dataclass, field
from operator import itemgetter
from typing import Generic, TypeVar

from carteiro.errors import StoreCorrupt, StoreFull, StoreUnavailable

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST_ITEMS = 500
MOST_BYTES = 1024 * 1024  # a caller waits for the whole list
_SMALL = 64 * 1024
_MOST_BYTES_OF_SMALL = (
    4 * 1024 * 1024
)  # of a list with nothing larger: each list takes a look at all that wait
_BYTES_OF_ITEM = 4096  # besides its own: the time to store an item


@dataclass(eq=False)
class Gatherer(Generic[Item, Answer]):
    """Turns ``write(list)`` into a call for one item, answered when its list is written.

    A cancelled caller cancels nothing: its item is written. A list that fails is written
    again item by item, so one bad item fails alone; unless the store itself is unreachable.
    """

    write: Callable[[list[Item]], Awaitable[list[Answer]]]
    _: KW_ONLY
    size: Callable[[Item], int] | None = None
    whose: Callable[[Item], Hashable] | None = None
    bound: int | None = None
    _waiting: deque[tuple[Item, asyncio.Future[Answer]]] = field(default_factory=deque)
    _writing: asyncio.Task[None] | None = None

    def __call__(self, item: Item) -> "asyncio.Future[Answer]":
        """Write the item together with the other waiting ones."""
        if self.bound is not None and len(self._waiting) >= self.bound:
            raise StoreUnavailable("too much is waiting to be stored: try again in a moment")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((item, answer))
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        return answer

    async def _write_all(self) -> None:
        try:
            await asyncio.sleep(0)  # callers of this turn of the loop still join the batch
            while self._waiting:
                await self._write_batch(self._next_batch())
        finally:
            self._writing = None

    def _next_batch(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        batch = self._first()
        if self._waiting and self.whose is not None:
            self._waiting.extendleft(reversed(batch))
            self._take_turns(self.whose)
            batch = self._first()
        return batch

    def _first(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        """As many as fit into a list, at least one."""
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        weight, most = 0, _MOST_BYTES_OF_SMALL
        while self._waiting and len(batch) < MOST_ITEMS:
            its = self._weight(self._waiting[0][0])
            weight += its
            if its > _SMALL:
                most = MOST_BYTES
            if weight > most and batch:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _take_turns(self, whose: Callable[[Item], Hashable]) -> None:
        """Sort by turns: the first item of each owner, then those with the fewest bytes of their owner before them."""
        turns: Counter[Hashable] = Counter()
        numbered = []
        for each in self._waiting:
            who = whose(each[0])
            numbered.append((turns[who], each))
            turns[who] += self._weight(each[0]) + _BYTES_OF_ITEM
        self._waiting = deque(each for _, each in sorted(numbered, key=itemgetter(0)))

    def _weight(self, item: Item) -> int:
        return self.size(item) if self.size is not None else 0

    async def _write_batch(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self.write([item for item, _ in batch])
            answered = list(zip(batch, answers, strict=True))
        except Exception as error:  # noqa: BLE001 - raised to the callers, whatever it is
            await self._write_one_by_one(batch, error)
            return
        for (_, future), answer in answered:
            if not future.done():
                future.set_result(answer)

    async def _write_one_by_one(
        self, batch: list[tuple[Item, asyncio.Future[Answer]]], error: Exception
    ) -> None:
        is_unreachable = isinstance(error, StoreUnavailable | StoreFull | StoreCorrupt)
        if len(batch) == 1 or is_unreachable:  # an unreachable store fails each of them
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for each in batch:
            await self._write_batch([each])
