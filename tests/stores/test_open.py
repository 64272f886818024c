"""The store that ends with its process."""

from pathlib import Path

import pytest

from carteiro.config import load
from carteiro.stores.open import open_backend
from carteiro.stores.sqlite import SqliteOptions, open_sqlite
from carteiro.stores.sqlite.store import SqliteStore

TEMPORARY = load(environ={}, overrides={"store": "memory://"})
OFF, NORMAL, FULL = range(3)  # of PRAGMA synchronous


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_store_in_memory_is_a_private_folder_until_it_is_closed(temporary: Path) -> None:
    """It is where temporary files are, and nothing of it stays."""
    async with open_backend(TEMPORARY):
        [folder] = _inside(temporary)

        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "carteiro.db").exists()

    assert _inside(temporary) == []


async def test_store_in_memory_is_removed_also_on_an_error(temporary: Path) -> None:
    """Only a process that is killed leaves its folder behind."""
    with pytest.raises(ZeroDivisionError):
        async with open_backend(TEMPORARY):
            raise ZeroDivisionError

    assert _inside(temporary) == []


async def test_stores_in_memory_are_separate() -> None:
    """Also in the same process."""
    async with open_backend(TEMPORARY) as one, open_backend(TEMPORARY) as other:
        await one.marks.put("whose", "one")

        assert await other.marks.find("whose") is None


@pytest.mark.parametrize(("durable", "expected"), [(True, [FULL, NORMAL]), (False, [OFF, OFF])])
async def test_only_durable_operations_are_synced(
    durable: bool, expected: list[int], tmp_path: Path
) -> None:
    """A 202 waits for the disk, a claim does not; a store that ends with its process never does."""
    async with open_sqlite(tmp_path / "post.db", SqliteOptions(durable=durable)) as backend:
        assert isinstance(backend.store, SqliteStore)
        found = [
            await backend.store._writer.do(
                lambda db: db.execute("PRAGMA synchronous").fetchone()[0], durable=each
            )
            for each in (True, False)
        ]

    assert found == expected
