"""``carteiro tickets dlq republish``: republish dead tickets to their topic."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import typer

from carteiro.cli.desk import confirm
from carteiro.cli.exit_codes import ExitCode
from carteiro.cli.options import a_rate
from carteiro.cli.printing import Column, note
from carteiro.cli.progress import count_done
from carteiro.cli.tickets.dlq.session import ArchiveSession, Selection, Why, at_the_archive
from carteiro.errors import needing_extra
from carteiro.runtime.acting import user
from carteiro.tickets.archive import redrive as redriving
from carteiro.tickets.archive.document import Wanted

_TOLD: dict[redriving.Answer, str] = {
    "again": "of these may be sent twice: an earlier run ended while sending them",
    "elsewhere": "are claimed by another run: try again in a minute if it was killed",
    "quarantined": "are quarantined, and were not sent",
    "undecodable": "are not tickets, and were quarantined; after a release --raw sends their bytes unchanged",
    "nothing_kept": "have no payload: it was too large for the archive, and its topic has deleted it",
    "too_often": "were republished too often: fix the cause first; --force sends them anyway",
    "failed": "were refused by Kafka, and stay dead",
    "changed": "died again or were changed meanwhile, and were not sent",
}
_COLUMNS: tuple[Column[redriving.Redriven], ...] = (
    Column("id", lambda row: row.ticket.id, is_whole=True),
    Column("type", lambda row: row.ticket.type),
    Column("error", lambda row: row.ticket.error_type),
    Column("answer", lambda row: row.answer),
    Column("why", lambda row: row.error),
)


@dataclass(frozen=True)
class HowTo:
    """Options of sending."""

    rate: Annotated[
        float | None,
        typer.Option(parser=a_rate, metavar="NUMBER", help="Rate limit, in tickets a second."),
    ] = None
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of tickets; 0: no limit.")] = 0
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Also records that are not tickets, as unchanged bytes."),
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Also tickets republished too often.")] = (
        False
    )
    max_redrives: Annotated[
        int, typer.Option(min=0, help="Republishes before a ticket needs --force.")
    ] = redriving.MOST_REDRIVES
    why: Why = ""

    def as_terms(self) -> redriving.RedriveTerms:
        """Return them as the terms of a run."""
        return redriving.RedriveTerms(
            by=user(),
            why=self.why,
            is_raw=self.raw,
            is_forced=self.force,
            most_redrives=self.max_redrives,
        )


@at_the_archive
async def republish(session: ArchiveSession, *, selection: Selection, how: HowTo) -> None:
    """Republish dead tickets to their topic, as PENDING and with all attempts.

    Give ids, or --all for every match. Tickets that are republished already are skipped. If stopped
    half-way, run it again: the archive records the progress. A payload too large for the archive is
    read from its original topic, while that still has it.
    """
    wanted = await session.chosen(selection, redriving.RESTING)
    is_dry = selection.dry_run
    if selection.everything and not is_dry:
        which = "all" if selection.is_any else "matching"
        confirm(f"Republish {which} dead tickets?", yes=selection.yes)
    await _run(session, wanted, how, is_dry=is_dry, is_listed=bool(selection.tickets) or is_dry)


async def _run(
    session: ArchiveSession, wanted: Wanted, how: HowTo, *, is_dry: bool, is_listed: bool
) -> None:
    with needing_extra("Tickets need", "tickets"):
        from carteiro.tickets.archive.fetching import fetched  # noqa: PLC0415 - as above
        from carteiro.tickets.consume.counter import RetryCounter  # noqa: PLC0415 - dear, and for this command alone
        from carteiro.tickets.dead_letters.publisher import Publisher  # noqa: PLC0415 - as above

    settings = session.settings.tickets
    counter, publisher = RetryCounter(settings.redis), Publisher(settings)
    redrive = redriving.Redrive(
        session.archive,
        counter,
        publisher,
        fetch=partial(fetched, settings),
        topic=settings.topic,
        terms=how.as_terms(),
    )
    answers: Counter[redriving.Answer] = Counter()
    if not is_dry:
        count = await session.archive.count(replace(wanted, states=redriving.RESTING))
        told = {"state": "redriven", "tickets": count, "run": redrive.id}
        ways = {"rate": how.rate, "limit": how.limit, "raw": how.raw, "force": how.force}
        await session.record("republish", wanted, {"states": redriving.RESTING}, **told, **ways)
    try:
        with count_done("republished") as tell:
            run = (
                redrive.look(wanted, limit=how.limit)
                if is_dry
                else redrive.run(wanted, rate=how.rate, limit=how.limit)
            )
            async for done in run:
                answers.update(each.answer for each in done)
                tell(_sent(answers))
                if is_listed:
                    session.out.rows(done, _COLUMNS, _document)
    finally:
        await publisher.close()
        await counter.close()
    _sum_up(session, redrive.id, answers, is_dry=is_dry, is_listed=is_listed)


def _document(done: redriving.Redriven) -> dict[str, Any]:
    found = {"ticketId": done.ticket.id, "answer": done.answer}
    return found | ({"error": done.error} if done.error else {})


def _sent(answers: Counter[redriving.Answer]) -> int:
    return sum(answers[each] for each in redriving.SENT)


def _sum_up(
    session: ArchiveSession,
    run: str,
    answers: Counter[redriving.Answer],
    *,
    is_dry: bool,
    is_listed: bool,
) -> None:
    """Print the results; with ``--json`` a list has done so already."""
    sent, counts = _sent(answers), dict(sorted(answers.items()))
    if not (is_listed and session.out.is_for_programs):
        document = {"run": run, "dryRun": is_dry, "sent": sent, "answers": counts}
        said = "Would be republished" if is_dry else f"Republished (run {run})"
        session.out.answer(document, f"{said}: {sent}.")
    for answer, count in counts.items():
        if answer in _TOLD:
            note(f"{count} {_TOLD[answer]}.")
    if is_listed and not is_dry and sent < answers.total():
        raise typer.Exit(ExitCode.REFUSED)
    if answers["failed"]:
        raise typer.Exit(ExitCode.FAILED)
