"""A connection goes from mail to mail, whatever becomes of those that wait for it."""

import asyncio
from datetime import timedelta
from typing import cast

import pytest

from carteiro.config import load
from carteiro.ports.provider import Handover
from carteiro.providers.smtp.client import Connection
from carteiro.providers.smtp.pool import ConnectionPool
from carteiro.providers.smtp.settings import SmtpSettings


class Session:
    """A connection that only counts."""

    is_usable = True
    mails = 0
    ends = 0

    def quit(self) -> None:
        """End it."""
        self.ends += 1


async def a_pool(opened: list[Session]) -> ConnectionPool:
    """A pool of one connection."""

    async def opens() -> Connection:
        opened.append(Session())
        return cast("Connection", opened[-1])

    options = load().section(SmtpSettings).model_copy(update={"connections": 1})
    return ConnectionPool(opens, options)


def a_handover() -> Handover:
    """One without haste."""
    return Handover(timedelta(seconds=30))


@pytest.mark.parametrize("is_late", [False, True])
async def test_connection_goes_past_a_cancelled_call_to_the_next(is_late: bool) -> None:
    """Also if the connection was already on its way to that call."""
    opened: list[Session] = []
    pool = await a_pool(opened)
    first = await pool.take(a_handover())
    handovers = [a_handover(), a_handover()]
    gone, waiting = [asyncio.create_task(pool.take(each)) for each in handovers]
    await asyncio.sleep(0)

    if is_late:
        pool.give_back(first)
        gone.cancel()
    else:
        gone.cancel()
        await asyncio.sleep(0)
        pool.give_back(first)

    assert await waiting is first
    assert gone.cancelled()
    assert [each.is_queued for each in handovers] == [True, False]
    assert len(opened) == 1


async def test_call_that_needs_a_new_connection_ends_the_one_it_was_given() -> None:
    """Both together would exceed the limit."""
    opened: list[Session] = []
    pool = await a_pool(opened)
    first = await pool.take(a_handover())
    waiting = asyncio.create_task(pool.take(a_handover(), fresh=True))
    await asyncio.sleep(0)

    pool.give_back(first)

    assert await waiting is not first
    assert [each.ends for each in opened] == [1, 0]
