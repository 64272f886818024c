"""Write lists to the store until they are stored."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from carteiro.errors import StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from carteiro.observability import log

Item = TypeVar("Item")
Answer = TypeVar("Answer")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 2.0  # between tries while the store is down


async def stored(  # noqa: PLR0913 - the write, and how to go on after an error
    operation: str,
    write: Callable[[list[Item]], Awaitable[list[Answer]]],
    items: list[Item],
    *,
    apart: bool = False,
    in_trouble: Callable[[], None] = lambda: None,
    give_up: asyncio.Event | None = None,
) -> list[Answer] | None:
    """Write a list, again and again after an error of the store: the write may be repeated.

    None: the store is not down and does not take it, so its items are to be written one by one, ``apart``. Such an item
    is written again after an error of the store, and raises any other. ``in_trouble`` is called when the store fails.
    Once ``give_up`` is set, its error is raised.
    """
    wait = FIRST_WAIT_S
    while True:
        try:
            return await write(items)
        except Exception as error:
            is_down = isinstance(error, StoreUnavailable | StoreFull | StoreCorrupt)
            if not (apart or is_down):
                return None
            if not isinstance(error, StoreError) or (give_up is not None and give_up.is_set()):
                raise
            log.store_failed(operation, error, wait=timedelta(seconds=wait))
            in_trouble()
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)
