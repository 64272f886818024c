"""``carteiro dead purge``: remove entries from the index."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated

from carteiro.cli.dead.choice import Choice
from carteiro.cli.desk import Desk, at_a_desk, confirm
from carteiro.cli.options import Yes, duration
from carteiro.cli.paging import page_by_page
from carteiro.model import DeadLetter


@at_a_desk
async def purge(
    desk: Desk,
    *,
    older_than: Annotated[timedelta | None, duration("Minimum age: 7d.")] = None,
    choice: Choice,
    yes: Yes = False,
) -> None:
    """Remove the matching dead letters from the index, except those that were redriven.

    The messages stay. A message whose entry was removed can still be redriven by its id. Export the
    entries first if you may need them.
    """
    wanted = await choice.as_filter(desk, is_redriven=False)
    if older_than is not None:
        end = datetime.now(UTC) - older_than
        wanted = replace(wanted, moved_before=min(end, wanted.moved_before or end))
    which = "all dead letters" if choice.is_any and older_than is None else "what matches"
    confirm(f"Drop {which}?", yes=yes)
    letters = desk.backend.dead_letters

    async def drop(page: list[DeadLetter]) -> int:
        return await letters.drop([row.id for row in page])

    dropped = await page_by_page("dropped", partial(letters.find, wanted, is_whole=False), drop)
    desk.out.answer({"dropped": dropped}, f"Dropped {dropped}.")
