"""Tidying dead letters: expired ones are deleted, and excess ones are first written to a file."""

import asyncio
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from carteiro.app import Carteiro
from carteiro.config import load
from carteiro.errors import StoreUnavailable
from carteiro.maintenance.tidy import tidy
from carteiro.model import DeadLetter, MessageId, RedriveAnswer, TimelineEvent
from carteiro.ports.dead_letters import DeadLetters
from carteiro.stores.open import dead_letter_folder
from carteiro.views.dead_letters import import_
from support.builders import ACME, BRASA
from support.burying import buried, contents_read, found
from support.syncing import inodes, watched_syncs
from support.working import LONG, TOO_LONG, Office, an_office, logged

WEEK = timedelta(days=7)
SOON = timedelta(milliseconds=1)


class Watched:
    """The dead letters of a store: signals the end of a round, and may fail to drop."""

    def __init__(self, dead_letters: DeadLetters, *, failures: int = 0) -> None:
        self._dead_letters = dead_letters
        self.failures = failures
        self._rounds = 0
        self._looks = 0
        self._changed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dead_letters, name)

    async def overfull(self, *, most: int, limit: int) -> list[DeadLetter]:
        self._looks += 1
        self._changed.set()
        return await self._dead_letters.overfull(most=most, limit=limit)

    async def drop(self, ids: Sequence[MessageId]) -> int:
        """Fail, or pass it on."""
        if self.failures:
            self.failures -= 1
            self._end_round()
            raise StoreUnavailable("the disk is busy")
        return await self._dead_letters.drop(ids)

    async def sizes(self, *, top: int) -> Any:
        """Pass it on: the last call of a round."""
        sizes = await self._dead_letters.sizes(top=top)
        self._end_round()
        return sizes

    def _end_round(self) -> None:
        self._rounds += 1
        self._changed.set()

    async def rounds(self, more: int) -> None:
        """Wait until this many more rounds were made."""
        until = self._rounds + more
        await self._when(lambda: self._rounds >= until)

    async def looks(self, number: int) -> None:
        """Wait until the excess was checked this many times."""
        await self._when(lambda: self._looks >= number)

    async def _when(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(TOO_LONG):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def running(
    office: Office, folder: Path, *, most: int, every: timedelta = SOON, failures: int = 0
) -> AsyncIterator[Watched]:
    """Run the loop for the time of a block; it must not end by itself."""
    watched = Watched(office.backend.dead_letters, failures=failures)
    letters = cast("DeadLetters", watched)
    upkeep, reading = office.backend.upkeep, office.backend.reading
    loop = tidy(upkeep, letters, reading, most=most, folder=folder, every=every)
    task = asyncio.create_task(loop)
    try:
        yield watched
    finally:
        assert not task.done(), task
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def kept_in(folder: Path) -> list[DeadLetter]:
    """The content of the files of a folder, oldest file first."""
    return [
        letter
        for file in sorted(folder.glob("*.jsonl"), key=lambda each: each.stat().st_mtime_ns)
        for letter in import_(file.read_bytes().splitlines())
    ]


async def test_expired_dead_letters_are_deleted(tmp_path: Path) -> None:
    """Without a file. The log has the number."""
    async with an_office() as office:
        for _ in range(3):
            await buried(office.backend)
        office.clock.advance(WEEK)
        fresh = await buried(office.backend)
        with logged() as lines:
            async with running(office, tmp_path, most=100, every=LONG) as watched:
                await watched.rounds(1)

        assert await found(office.backend) == [fresh]
        assert kept_in(tmp_path) == []
        assert [(line["task"], line["count"]) for line in lines] == [("tidy", 3)]


async def test_file_is_synced_before_its_entries_are_deleted(tmp_path: Path) -> None:
    """With its name, and with the folders that were created for it."""
    async with an_office() as office:
        for _ in range(2):
            await buried(office.backend, ACME)
        folder = tmp_path / "new" / "folder"
        with watched_syncs() as synced:
            async with running(office, folder, most=1) as watched:
                await watched.rounds(1)

        [file] = folder.glob("*")
        assert synced == inodes(tmp_path, tmp_path / "new", file, folder)


async def test_excess_dead_letters_are_written_to_a_file_first(tmp_path: Path) -> None:
    """The oldest of the largest tenant, whole and with history; its message can still be redriven."""
    async with an_office() as office:
        quiet = await buried(office.backend, BRASA)
        loud = [await buried(office.backend, ACME) for _ in range(4)]
        letters = [await office.letter(each) for each in loud[:2]]
        folder = tmp_path / "new" / "folder"
        with logged() as lines:
            async with running(office, folder, most=3) as watched:
                await watched.rounds(2)

        [file] = folder.glob("*")
        assert kept_in(folder) == letters
        assert b'"events":[{"type":"ENQUEUED"' in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert await found(office.backend) == [*loud[:1:-1], quiet]
        assert [line["event"] for line in lines] == [
            "dead_letters.exported",
            "dead_letters.filling",
        ]
        assert (lines[0]["count"], lines[0]["file"]) == (2, str(file))
        answers = await office.backend.dead_letters.redrive(loud[:1], by="ana")
        assert answers == [RedriveAnswer.REDRIVEN]


async def test_contents_are_written_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand of one tenant, of a megabyte each, must not end the worker of all."""
    async with an_office() as office:
        for _ in range(4):
            await buried(office.backend)
        read = contents_read(monkeypatch)
        async with running(office, tmp_path, most=1, every=LONG) as watched:
            await watched.rounds(1)

    assert (len(kept_in(tmp_path)), read) == (3, [1, 1, 1])


async def test_store_that_fails_leaves_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has addresses and contents, and nobody would delete it."""

    async def events(*_: object) -> list[TimelineEvent]:
        raise StoreUnavailable("the disk is busy")

    async with an_office() as office:
        for _ in range(2):
            await buried(office.backend)
        monkeypatch.setattr(type(office.backend.reading), "events", events)
        folder = tmp_path / "files"
        async with running(office, folder, most=1) as watched:
            await watched.looks(3)

        assert [*folder.glob("*")] == []


async def test_file_can_be_imported(tmp_path: Path) -> None:
    """Its entries come back into the index, each once."""
    async with an_office() as office:
        ids = [await buried(office.backend) for _ in range(3)]
        async with running(office, tmp_path, most=1) as watched:
            await watched.rounds(1)

        restored = await office.backend.dead_letters.restore(kept_in(tmp_path))

        assert restored == 2
        assert sorted(await found(office.backend)) == sorted(ids)


async def test_crash_between_file_and_deletion_leaves_a_duplicate(tmp_path: Path) -> None:
    """Nothing is lost: it is in two files, and is imported once."""
    async with an_office() as office:
        first = await buried(office.backend)
        await buried(office.backend)
        async with running(office, tmp_path, most=1, failures=1) as watched:
            await watched.rounds(2)

        letters = kept_in(tmp_path)
        assert [letter.id for letter in letters] == [first, first]
        assert await office.backend.dead_letters.restore(letters) == 1


async def test_entries_that_cannot_be_written_are_not_deleted(tmp_path: Path) -> None:
    """A folder that is a file: the log says so, and the index keeps more than it should."""
    async with an_office() as office:
        for _ in range(3):
            await buried(office.backend)
        folder = tmp_path / "taken"
        folder.write_text("a file")
        with logged() as lines:
            async with running(office, folder, most=1) as watched:
                await watched.looks(2)

        assert lines[0]["event"] == "upkeep.failed"
        assert len(await found(office.backend)) == 3


@pytest.mark.parametrize(("entries", "warnings"), [(7, 0), (8, 1), (10, 1)])
async def test_warning_comes_at_four_fifths(tmp_path: Path, entries: int, warnings: int) -> None:
    """Once, at any number of checks, with advice."""
    async with an_office() as office:
        for _ in range(entries):
            await buried(office.backend)
        with logged() as lines:
            async with running(office, tmp_path, most=10) as watched:
                await watched.rounds(3)

        filling = [line for line in lines if line["event"] == "dead_letters.filling"]
        assert len(filling) == warnings
        assert all((line["count"], line["maxEntries"]) == (entries, 10) for line in filling)
        assert all("redrive or purge" in line["message"] for line in filling)


async def test_each_crossing_is_warned_of_once(tmp_path: Path) -> None:
    """Below again, it may be reported again."""
    async with an_office() as office:
        ids = [await buried(office.backend) for _ in range(8)]
        with logged() as lines:
            async with running(office, tmp_path, most=10) as watched:
                await watched.rounds(2)
                await office.backend.dead_letters.drop(ids[:1])
                await watched.rounds(2)
                await buried(office.backend)
                await watched.rounds(2)

        assert [line["event"] for line in lines] == ["dead_letters.filling"] * 2


# --- where it is wired ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "folder"),
    [
        ({"store": "sqlite:////data/post.db"}, Path("/data/dead-letters")),
        ({"store": "memory://"}, Path.cwd() / "dead-letters"),
        ({"store": "memory://", "dead_letters.export_folder": "kept"}, Path.cwd() / "kept"),
        (
            {"store": "sqlite:////data/post.db", "dead_letters.export_folder": "/kept"},
            Path("/kept"),
        ),
    ],
)
def test_files_are_next_to_the_store_by_default(settings: dict[str, str], folder: Path) -> None:
    """They can be found without a setting."""
    assert dead_letter_folder(load(environ={}, overrides=settings)) == folder


async def test_worker_tidies_while_it_works(tmp_path: Path) -> None:
    """There is nothing to start."""
    kept: dict[str, object] = {"max_entries": 1, "export_folder": str(tmp_path)}
    async with Carteiro.open("memory://", dead_letters=kept) as post:
        await post.backend.tenants.ensure([ACME])
        first = await buried(post.backend)
        await buried(post.backend)

        worker = asyncio.create_task(post.run_worker())
        async with asyncio.timeout(TOO_LONG):
            while not kept_in(tmp_path):
                await asyncio.sleep(0.001)
        post.stop()
        await worker

    assert [letter.id for letter in kept_in(tmp_path)] == [first]
