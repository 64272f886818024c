"""``carteiro tickets dlq purge``: take old tickets out of the archive, by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from carteiro.cli.desk import confirm, who
from carteiro.cli.options import Yes, a_duration, in_words
from carteiro.cli.tickets.dlq.session import ArchiveSession, Choice, DryRun, at_the_archive
from carteiro.observability import log
from carteiro.tickets import events
from carteiro.tickets.archive.document import STATES, Wanted
from carteiro.tickets.ticket import TicketId
from carteiro.views.dead_letters import in_iso

_RETENTION = timedelta(days=30)  # of the topic
_MOST_NAMED = 100
Reason = Annotated[str, typer.Option("--why", help="The reason, for the log.")]


@at_the_archive
async def purge(  # noqa: PLR0913 - a parameter per flag
    session: ArchiveSession,
    *,
    older_than: Annotated[
        timedelta,
        typer.Option(parser=a_duration, metavar="DURATION", help="Archived longer ago than."),
    ] = "90d",  # type: ignore[assignment] # as it would be written: Typer reads it
    why: Reason = "",
    choice: Choice,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Take dead tickets that were archived long ago out of the archive, for good.

    What is on its way again right now stays. What is younger than the topic keeps its records (30 days)
    would come back if the archive's group were ever set back. Their histories go with them: who purged what
    and why is a line in the log (dlq_purged), on stderr.
    """
    end = datetime.now(UTC) - older_than
    wanted = choice.wanted(states=tuple(each for each in STATES if each != "redriving"))
    wanted = replace(wanted, before=min(end, wanted.before or end))
    count = await session.archive.count(wanted)
    if dry_run:
        session.out.answer({"purged": 0, "matching": count}, f"Would be taken out: {count}.")
        return
    young = "" if older_than >= _RETENTION else " Some may still be on the topic."
    confirm(f"Take out {count}, archived over {in_words(older_than)} ago?{young}", yes=yes)
    ids = await _named(session, wanted)
    purged = await session.archive.purge(wanted)
    log.configure("info")  # whatever the settings say: there is no other record of it
    events.dlq_purged(purged, by=who(), why=why, chosen=_chosen(wanted), ids=ids)
    log.flush()
    session.out.answer({"purged": purged, "matching": count}, f"Taken out: {purged}.")


async def _named(session: ArchiveSession, wanted: Wanted) -> list[TicketId]:
    """Which it will be, if they are few."""
    page = await session.archive.find(wanted, cursor=None, limit=_MOST_NAMED)
    return [] if page.next else [each.id for each in page.rows]


def _chosen(wanted: Wanted) -> dict[str, str]:
    """By what they were chosen."""
    wishes = {
        "taskType": wanted.type,
        "errorType": wanted.error_type,
        "reason": wanted.reason,
        "since": None if wanted.since is None else in_iso(wanted.since),
        "before": None if wanted.before is None else in_iso(wanted.before),
    }
    return {name: wish for name, wish in wishes.items() if wish is not None}
