"""Marks: the last one put is found, by every process, for good."""

from carteiro.ports import Backend
from support.set_ups import Place


async def test_unused_mark_is_missing(backend: Backend) -> None:
    """A name that was never used has no text."""
    assert await backend.marks.find("provider") is None


async def test_last_mark_is_found(backend: Backend) -> None:
    """A mark replaces the one of its name, and no other."""
    await backend.marks.put("provider", "smtp")
    await backend.marks.put("colour", "blue")
    await backend.marks.put("provider", "ses:eu-west-1, resend")

    assert await backend.marks.find("provider") == "ses:eu-west-1, resend"
    assert await backend.marks.find("colour") == "blue"


async def test_mark_is_there_for_the_next_opener(place: Place) -> None:
    """Other processes know it, and those that start later."""
    async with place.opened() as first:
        await first.marks.put("provider", "smtp")

    async with place.opened() as second:
        assert await second.marks.find("provider") == "smtp"
