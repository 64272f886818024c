"""Table queue, heard: a request ends the wait of every process."""

import asyncio
from datetime import timedelta

from carteiro.ports import Backend, TableQueue
from support.requests import requests_of
from support.set_ups import Place
from support.table_queue import Application
from support.working import TOO_LONG

LONG = timedelta(seconds=20)  # a wait that ends by itself fails the test


async def _listening(requests: TableQueue) -> None:
    """Wait until it listens, which rings, and for the notifications of what happened before."""
    assert await requests.wait(LONG, since=0)
    while await requests.wait(timedelta(milliseconds=50), since=requests.rings()):
        pass


async def test_request_ends_the_wait(place: Place, backend: Backend, acme: Application) -> None:
    """In each process that waits, and only once it is committed."""
    identity = acme.enqueue()
    async with place.opened() as other, asyncio.timeout(TOO_LONG):
        both = [requests_of(backend), requests_of(other)]
        for each in both:
            await _listening(each)
        waits = [asyncio.ensure_future(each.wait(LONG, since=each.rings())) for each in both]
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in waits)

        acme.update(identity, "status = 'cancelled'")

        assert await asyncio.gather(*waits) == [True, True]


async def test_wait_without_a_request_ends_by_itself(backend: Backend) -> None:
    """There was no notification."""
    requests = requests_of(backend)
    await _listening(requests)

    assert not await requests.wait(timedelta(milliseconds=1), since=requests.rings())
