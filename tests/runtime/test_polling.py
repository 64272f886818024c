"""Polling for a change that another process makes."""

from datetime import timedelta

from carteiro.runtime.polling import polls


async def test_there_is_one_look_at_least() -> None:
    """Also if there is no time to wait at all."""
    assert [each async for each in polls(within=timedelta(0))] == [None]


async def test_the_looks_end_when_the_time_is_over() -> None:
    """However short or long the pauses would be."""
    looks = 0

    async for _ in polls(within=timedelta(milliseconds=1)):
        looks += 1

    assert looks
