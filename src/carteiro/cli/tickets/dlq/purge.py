"""``carteiro tickets dlq purge``: delete old tickets from the archive."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from carteiro.cli.desk import confirm
from carteiro.cli.options import Yes, duration, in_words
from carteiro.cli.tickets.dlq.session import ArchiveSession, Choice, DryRun, at_the_archive
from carteiro.observability import log
from carteiro.runtime.acting import user
from carteiro.tickets import events
from carteiro.tickets.archive.document import STATES, Wanted
from carteiro.views.moments import in_iso

_RETENTION = timedelta(days=30)  # of the topic
_MOST_NAMED = 100
Reason = Annotated[str, typer.Option("--why", help="The reason, for the log.")]


@at_the_archive
async def purge(  # noqa: PLR0913 - a parameter per flag
    session: ArchiveSession,
    *,
    older_than: Annotated[timedelta, duration("Minimum age in the archive.")] = "90d",  # type: ignore[assignment] # as it would be written: Typer reads it
    why: Reason = "",
    choice: Choice,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete dead tickets that were archived long ago, with their histories.

    Tickets that are being republished stay. Tickets younger than the topic's retention (30 days) would
    come back if the offsets of the archive's group were reset. The log line dlq_purged on stderr records
    who purged which tickets and why; tickets audit does without the reason.
    """
    end = datetime.now(UTC) - older_than
    wanted = choice.wanted(states=tuple(each for each in STATES if each != "redriving"))
    wanted = replace(wanted, before=min(end, wanted.before or end))
    count = await session.archive.count(wanted)
    if dry_run:
        session.out.answer({"purged": 0, "matching": count}, f"Would be purged: {count}.")
        return
    young = "" if older_than >= _RETENTION else " Some may still be on the topic."
    confirm(f"Purge {count}, archived over {in_words(older_than)} ago?{young}", yes=yes)
    page = await session.archive.find(wanted, cursor=None, limit=_MOST_NAMED)
    ids = [] if page.next else [each.id for each in page.rows]
    await session.record("purge", wanted, {"tickets": count, "ids": ids}, tickets=0)
    purged = await session.archive.purge(wanted)
    log.configure("info")  # whatever the settings say: only it has the reason
    events.dlq_purged(purged, by=user(), why=why, chosen=_chosen(wanted), ids=ids)
    log.flush()
    session.out.answer({"purged": purged, "matching": count}, f"Purged: {purged}.")


def _chosen(wanted: Wanted) -> dict[str, str]:
    """Return the filters in use."""
    wishes = {
        "taskType": wanted.type,
        "errorType": wanted.error_type,
        "reason": wanted.reason,
        "since": None if wanted.since is None else in_iso(wanted.since),
        "before": None if wanted.before is None else in_iso(wanted.before),
    }
    return {name: wish for name, wish in wishes.items() if wish is not None}
