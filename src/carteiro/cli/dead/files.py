"""``carteiro dead export | import``: dead letters in files."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import IO, Annotated

import typer

from carteiro.cli.dead.choice import Choice
from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.exit_codes import NotFound, NotNow
from carteiro.cli.paging import page_by_page
from carteiro.cli.progress import count_done
from carteiro.model import DeadFilter, DeadLetter
from carteiro.runtime.durable_file import sync_file, sync_folder
from carteiro.views import dead_letters

_PAGE = 500
_STDIO = "-"


@at_a_desk
async def export(
    desk: Desk,
    file: Annotated[str, typer.Argument(help="New file, one JSON entry a line; - is stdout.")],
    *,
    choice: Choice,
) -> None:
    """Export the matching dead letters with their histories to a file; they stay in the index."""
    wanted = await choice.as_filter(desk)
    if file == _STDIO:
        await _exported(desk, wanted, sys.stdout.buffer)
        return
    with _new_file(file) as target:
        count = await _exported(desk, wanted, target)
        sync_file(target)
    sync_folder(Path(file).parent)
    desk.out.answer({"path": file, "exported": count}, f"Exported to {file}: {count}.")


def _new_file(file: str) -> IO[bytes]:
    try:
        # It contains mail: only the owner may read it.
        return open(file, "xb", opener=lambda path, flags: os.open(path, flags, 0o600))
    except FileExistsError:
        raise NotNow(f"{file} exists already: name another file, or move it") from None
    except OSError as error:
        raise NotFound(f"{file} cannot be written: {error.strerror}") from error


async def _exported(desk: Desk, wanted: DeadFilter, target: IO[bytes]) -> int:
    letters, reading = desk.backend.dead_letters, desk.backend.reading

    async def write(page: list[DeadLetter]) -> int:
        count = 0
        for each in page:  # one at a time: a content may be a megabyte
            letter = await letters.show(each.id)
            if letter is not None:
                count += dead_letters.export([(letter, await reading.events(each.id))], target)
        return count

    return await page_by_page("exported", partial(letters.find, wanted, is_whole=False), write)


@at_a_desk
async def import_(
    desk: Desk, file: Annotated[str, typer.Argument(help="Exported file; - is stdin.")]
) -> None:
    """Import dead letters whose messages are still dead; a file with a wrong line changes nothing."""
    letters = _read(file)
    restored = 0
    with count_done("restored") as tell:
        for start in range(0, len(letters), _PAGE):
            page = letters[start : start + _PAGE]
            restored += await desk.backend.dead_letters.restore(page)
            tell(restored)
    document = {"entries": len(letters), "restored": restored}
    others = (
        " The others are not dead letters now, or are still in the index."
        if restored < len(letters)
        else ""
    )
    desk.out.answer(document, f"Back in the index: {restored} of {len(letters)}.{others}")


def _read(file: str) -> list[DeadLetter]:
    if file == _STDIO:
        return dead_letters.import_(sys.stdin.buffer)
    try:
        with Path(file).open("rb") as source:
            return dead_letters.import_(source)
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from error
