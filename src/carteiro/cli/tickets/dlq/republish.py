"""``carteiro tickets dlq republish``: put dead tickets on their topic again."""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from carteiro.cli.desk import confirm, who
from carteiro.cli.exit_codes import ExitCode
from carteiro.cli.options import Yes, a_rate
from carteiro.cli.printing import Column, note
from carteiro.cli.progress import count_done
from carteiro.cli.tickets.dlq.session import (
    ArchiveSession,
    Choice,
    DryRun,
    Everything,
    TicketIds,
    Why,
    at_the_archive,
    needing_libraries,
)
from carteiro.tickets.archive.document import Wanted
from carteiro.tickets.archive.redrive import (
    MOST_REDRIVES,
    RESTING,
    SENT,
    Answer,
    Redrive,
    Redriven,
    RedriveTerms,
)

_TOLD: dict[Answer, str] = {
    "again": "of these perhaps for the second time: an earlier run ended while it sent them",
    "elsewhere": "another run has them, or had them until a minute ago: ask again if it was killed",
    "quarantined": "quarantined, and not sent",
    "undecodable": "no ticket: such are quarantined; --raw sends the bytes of released ones as they were",
    "nothing_kept": "their payload was too large for the archive, and has gone from where dlq show says it was",
    "too_often": "went round too often: fix what is wrong first; --force sends them anyway",
    "failed": "not taken by Kafka: dead as before",
    "changed": "died again or were changed meanwhile",
}
_COLUMNS: tuple[Column[Redriven], ...] = (
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
        float | None, typer.Option(parser=a_rate, metavar="NUMBER", help="Most tickets a second.")
    ] = None
    limit: Annotated[int, typer.Option(min=0, help="Most tickets in all; 0 is all.")] = 0
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Also records that are not tickets: their bytes as they were."),
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Also what went round too often.")] = False
    max_redrives: Annotated[int, typer.Option(min=0, help="How often is too often.")] = (
        MOST_REDRIVES
    )
    why: Why = ""

    def as_terms(self) -> RedriveTerms:
        """The same, as a run takes it."""
        return RedriveTerms(
            by=who(),
            why=self.why,
            is_raw=self.raw,
            is_forced=self.force,
            most_redrives=self.max_redrives,
        )


@at_the_archive
async def republish(  # noqa: PLR0913 - a parameter per flag
    session: ArchiveSession,
    tickets: TicketIds = None,
    *,
    everything: Everything = False,
    choice: Choice,
    how: HowTo,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Put dead tickets on their topic again, as PENDING and with fresh attempts.

    With ids these tickets, with --all every one that matches. What is on its way already is not sent
    twice. Stopped half-way it can be asked again: how far it came stands in the archive. A payload that
    was too large for the archive is read again from the topic it came on, while that still has it.
    """
    wanted = await session.chosen(tickets, choice, RESTING, everything=everything)
    if everything and not dry_run:
        confirm(f"Send {'all' if choice.is_any else 'matching'} dead tickets again?", yes=yes)
    await _run(session, wanted, how, is_dry=dry_run, is_listed=bool(tickets) or dry_run)


async def _run(
    session: ArchiveSession, wanted: Wanted, how: HowTo, *, is_dry: bool, is_listed: bool
) -> None:
    with needing_libraries():
        from carteiro.tickets.archive.fetching import fetched  # noqa: PLC0415 - as above
        from carteiro.tickets.consume.counter import RetryCounter  # noqa: PLC0415 - dear, and for this command alone
        from carteiro.tickets.dead_letters.publisher import Publisher  # noqa: PLC0415 - as above

    settings = session.settings.tickets
    counter, publisher = RetryCounter(settings.redis), Publisher(settings)
    redrive = Redrive(
        session.archive,
        counter,
        publisher,
        fetch=partial(fetched, settings),
        topic=settings.topic,
        terms=how.as_terms(),
    )
    answers: Counter[Answer] = Counter()
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


def _document(done: Redriven) -> dict[str, Any]:
    found = {"ticketId": done.ticket.id, "answer": done.answer}
    return found | ({"error": done.error} if done.error else {})


def _sent(answers: Counter[Answer]) -> int:
    return sum(answers[each] for each in SENT)


def _sum_up(
    session: ArchiveSession, run: str, answers: Counter[Answer], *, is_dry: bool, is_listed: bool
) -> None:
    """Say what became of all; with ``--json`` a list has said it already."""
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
