"""``carteiro backup``: a copy of the store while others write to it."""

from pathlib import Path
from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.progress import share_done


@at_a_desk
async def backup(
    desk: Desk, file: Annotated[Path, typer.Argument(help="New file for the copy; must not exist.")]
) -> None:
    """Copy a consistent snapshot of the store to a new file; other processes keep running."""
    if file.exists():
        raise NotNow(f"{file} exists already: name another file, or move it")
    if not file.absolute().parent.is_dir():
        raise NotFound(f"there is no folder {file.absolute().parent}: create it first")
    with share_done(f"backup to {file}") as tell:
        await desk.backend.upkeep.backup(file, tell)
    size = file.stat().st_size
    document = {"path": str(file.absolute()), "bytes": size}
    desk.out.answer(document, f"Copied to {file} ({size:,} bytes).")
