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


async def stored(
    operation: str,
    write: Callable[[list[Item]], Awaitable[list[Answer]]],
    items: list[Item],
    *,
    in_trouble: Callable[[], None] = lambda: None,
    give_up: asyncio.Event | None = None,
) -> list[Answer] | None:
    """Write a list, again and again after an error of the store: the write may be repeated.

    None: the store does not take it as a whole, so its items are to be written one by one. A single item that cannot be
    written for another reason raises its error. ``in_trouble`` is called when the store fails. Once ``give_up`` is
    set, its error is raised.
    """
    wait = FIRST_WAIT_S
    while True:
        try:
            return await write(items)
        except Exception as error:
            is_down = isinstance(error, StoreUnavailable | StoreFull | StoreCorrupt)
            if len(items) > 1 and not is_down:
                return None
            if not isinstance(error, StoreError) or (give_up is not None and give_up.is_set()):
                raise
            log.store_failed(operation, error, wait=timedelta(seconds=wait))
            in_trouble()
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)
