"""Files that survive a power cut: on the disk before the call returns."""

import os
from pathlib import Path
from typing import IO


def sync_file(file: IO[bytes]) -> None:
    """Wait until the content is on the disk; `sync_folder` does the same for the name."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the system supports that."""
    if hasattr(os, "O_DIRECTORY"):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def make_folder(folder: Path) -> None:
    """Create a folder that only its owner can read, with its parents, if it is missing."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)
