"""``carteiro backup``: a copy of the store while others write to it."""

from pathlib import Path
from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.progress import share_done


@at_a_desk
async def backup(
    desk: Desk,
    file: Annotated[Path, typer.Argument(help="Where the copy goes; must not be there yet.")],
) -> None:
    """Copy the store as it is at one moment to a new file; others go on meanwhile."""
    if file.exists():
        raise NotNow(f"{file} is there already: name another file, or move it away")
    if not file.absolute().parent.is_dir():
        raise NotFound(f"there is no folder {file.absolute().parent}: make it first")
    with share_done(f"backup to {file}") as tell:
        await desk.backend.upkeep.backup(file, tell)
    size = file.stat().st_size
    document = {"path": str(file.absolute()), "bytes": size}
    desk.out.answer(document, f"Copied to {file} ({size:,} bytes).")
