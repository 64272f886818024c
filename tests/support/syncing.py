"""The files and folders that this process has synced, in order."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def watched_syncs() -> Iterator[list[int]]:
    """The inodes that Python code syncs; each is synced for real."""
    synced: list[int] = []
    sync = os.fsync

    def watched(opened: int) -> None:
        sync(opened)
        synced.append(os.fstat(opened).st_ino)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", watched)
        yield synced


def inodes(*paths: Path) -> list[int]:
    """The entries of `watched_syncs` for these."""
    return [path.stat().st_ino for path in paths]
