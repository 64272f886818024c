"""Steps of a test that goes through the library."""

import asyncio

from carteiro.app import Carteiro
from carteiro.model import FINISHED, MessageId, StoredMessage
from support.working import TOO_LONG


async def work(post: Carteiro) -> None:
    """Work until every message is finished."""
    working = asyncio.create_task(post.run_worker())
    async with asyncio.timeout(TOO_LONG):
        while not set(await post.backend.reading.states()) <= FINISHED:
            await asyncio.sleep(0.001)
        post.stop()
        await working


async def row_of(post: Carteiro, message: MessageId) -> StoredMessage:
    """The ledger row of a message."""
    row = await post.backend.reading.message(message)
    assert row is not None
    return row
