"""Polling for a change that another process makes."""

from datetime import timedelta

from carteiro.runtime.polling import polls


async def test_poll_looks_at_least_once() -> None:
    """Also with a timeout of zero."""
    assert [each async for each in polls(within=timedelta(0))] == [None]


async def test_poll_ends_at_its_timeout() -> None:
    """For short and long pauses alike."""
    looks = 0

    async for _ in polls(within=timedelta(milliseconds=1)):
        looks += 1

    assert looks
