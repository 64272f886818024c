"""Upkeep, copied: a backup made while others write opens as a whole store."""

import asyncio
from pathlib import Path

import pytest

from carteiro.errors import CannotBackUp, StoreUnavailable
from carteiro.ports import Backend
from support.builders import a_message, messages, sent
from support.set_ups import Place, SetUp
from support.steps import accepted, attempted, claimed_ids, everything_about

NAME = (
    "carteiro.db"  # the file name of a store in the set-ups: a backup with this name opens as one
)


def _nobody(_share: float) -> None:
    """Ignore the progress."""


async def test_backup_opens_as_a_whole_store(file_place: Place, tmp_path: Path) -> None:
    """All its data can be read and worked on."""
    folder = tmp_path / "copy"
    folder.mkdir()
    async with file_place.opened() as backend:
        [done] = await accepted(backend.store, a_message())
        await attempted(backend.store, sent())
        [waiting] = await accepted(backend.store, a_message())
        before = await everything_about(backend, done)

        await backend.upkeep.backup(folder / NAME, _nobody)

    async with Place(file_place.set_up, folder, file_place.clock).opened() as copied:
        assert await everything_about(copied, done) == before
        assert await claimed_ids(copied.store) == [waiting]


async def test_others_write_on_meanwhile(file_place: Place, tmp_path: Path) -> None:
    """The copy is the state at one moment: batches of messages are whole or absent."""
    folder = tmp_path / "copy"
    folder.mkdir()
    async with file_place.opened() as backend:
        await accepted(backend.store, *messages(200, content="x" * 10_000))
        backing_up = asyncio.create_task(backend.upkeep.backup(folder / NAME, _nobody))
        lists = []
        while not backing_up.done():
            lists.append(await accepted(backend.store, *messages(5)))
        await backing_up

    async with Place(file_place.set_up, folder, file_place.clock).opened() as copied:
        rows = {each: await copied.reading.message(each) for ids in lists for each in ids}
        for ids in lists:
            assert len({rows[each] is None for each in ids}) == 1
        assert sum((await copied.reading.states()).values()) >= 200


async def test_progress_is_reported_to_the_end(file_place: Place, tmp_path: Path) -> None:
    """Shares of the whole, never less than before, and at last all of it."""
    told: list[float] = []
    async with file_place.opened() as backend:
        await accepted(backend.store, *messages(50))

        await backend.upkeep.backup(tmp_path / "copy.db", told.append)
        await asyncio.sleep(0)

    assert told == sorted(told)
    assert told[-1] == 1


async def test_existing_file_is_not_overwritten(file_place: Place, tmp_path: Path) -> None:
    """It may be the last backup."""
    target = tmp_path / "copy.db"
    target.write_text("precious")
    async with file_place.opened() as backend:
        with pytest.raises(CannotBackUp, match="exists already"):
            await backend.upkeep.backup(target, _nobody)

    assert target.read_text() == "precious"


async def test_missing_folder_is_reported(file_place: Place, tmp_path: Path) -> None:
    """And nothing is left behind."""
    async with file_place.opened() as backend:
        with pytest.raises(StoreUnavailable):
            await backend.upkeep.backup(tmp_path / "nowhere" / "copy.db", _nobody)


async def test_cancelled_backup_leaves_no_partial_copy(file_place: Place, tmp_path: Path) -> None:
    """A copy gets its name when it is whole; the part is removed."""
    folder = tmp_path / "copies"
    folder.mkdir()
    begun = asyncio.Event()
    async with file_place.opened() as backend:
        await accepted(backend.store, *messages(400, content="x" * 60_000))
        backing_up = asyncio.create_task(
            backend.upkeep.backup(folder / "copy.db", lambda _: begun.set())
        )
        await begun.wait()
        backing_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await backing_up
        while any(each.name.endswith(".part") for each in folder.iterdir()):
            await asyncio.sleep(0.001)

    assert not any(each.name.endswith(".part") for each in folder.iterdir())


async def test_store_that_is_not_a_file_cannot_be_copied(
    set_up: SetUp, backend: Backend, tmp_path: Path
) -> None:
    """The error says so, and no empty file is written; every other one can."""
    target = tmp_path / "copy.db"
    if set_up.in_files:
        await backend.upkeep.backup(target, _nobody)
    else:
        with pytest.raises(CannotBackUp):
            await backend.upkeep.backup(target, _nobody)

    assert target.exists() == set_up.in_files
