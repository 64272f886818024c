"""Dead letters past their time to live leave the index, and so do those beyond the limit.

Those beyond the limit are written to a file first, and dropped after fsync. A crash between the two
leaves the entry in both: it goes into another file the next time. Importing both files restores it once.
"""

import asyncio
import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from uuid_utils import uuid7

from carteiro.maintenance.loop import run_led
from carteiro.model import DeadLetter, TimelineEvent
from carteiro.observability import log
from carteiro.ports.dead_letters import DeadLetters
from carteiro.ports.reading import Reading
from carteiro.ports.upkeep import Upkeep
from carteiro.runtime.durable_file import make_folder, sync_file, sync_folder
from carteiro.views.dead_letters import export

_PAGE = 1000
_WARN_AT = 0.8  # of the limit
_OURS_ALONE = stat.S_IRUSR | stat.S_IWUSR  # the file contains addresses of people


async def tidy(  # noqa: PLR0913 - the ports it tidies, and a setting each
    upkeep: Upkeep,
    dead_letters: DeadLetters,
    reading: Reading,
    *,
    most: int,
    folder: Path,
    every: timedelta = timedelta(minutes=1),
) -> None:
    """Tidy until cancelled: at most ``most`` entries stay, the others are exported to ``folder``."""
    has_warned = False

    async def page() -> bool:
        nonlocal has_warned
        outlived = await dead_letters.outlived(limit=_PAGE)
        if outlived:
            log.upkeep_done("tidy", count=await dead_letters.drop(outlived))
        going = await dead_letters.overfull(most=most, limit=_PAGE)
        if going:
            await _export_and_drop(dead_letters, reading, going, folder)
        count, _ = await dead_letters.sizes(top=0)
        is_filling = count >= most * _WARN_AT
        if is_filling and not has_warned:
            log.dead_letters_filling(count=count, most=most, folder=str(folder))
        has_warned = is_filling
        return len(outlived) == _PAGE or len(going) == _PAGE

    await run_led(upkeep, "tidy", page, every=every)


async def _export_and_drop(
    dead_letters: DeadLetters, reading: Reading, going: Sequence[DeadLetter], folder: Path
) -> None:
    part = await asyncio.to_thread(_new_part, folder)
    try:
        for each in going:  # one at a time: a content may be a megabyte
            letter = await dead_letters.show(each.id)
            if letter is not None:
                told = [(letter, await reading.events(each.id))]
                await asyncio.to_thread(_append, told, part)
        file = await asyncio.to_thread(_completed, part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    dropped = await dead_letters.drop([letter.id for letter in going])
    log.dead_letters_exported(count=dropped, file=str(file))


def _new_part(folder: Path) -> Path:
    """A new file, which has its final name once it is complete."""
    make_folder(folder)
    now = datetime.now(UTC)
    part = folder / f"dead-letters-{now:%Y%m%dT%H%M%SZ}-{str(uuid7())[-12:]}.part"
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OURS_ALONE))
    return part


def _append(told: Sequence[tuple[DeadLetter, Sequence[TimelineEvent]]], part: Path) -> None:
    with part.open("ab") as out:
        export(told, out)


def _completed(part: Path) -> Path:
    """Sync the file, then give it its name."""
    with part.open("ab") as out:
        sync_file(out)
    file = part.rename(part.with_suffix(".jsonl"))
    sync_folder(file.parent)
    return file
