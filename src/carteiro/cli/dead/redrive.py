"""``carteiro dead redrive``: send dead letters again."""

from collections.abc import Sequence
from typing import Annotated

import typer

from carteiro.cli.dead.choice import Choice
from carteiro.cli.desk import Desk, at_a_desk, confirm
from carteiro.cli.exit_codes import ExitCode, WrongUse
from carteiro.cli.messages import known_message, print_answers
from carteiro.cli.options import Yes, a_rate
from carteiro.cli.printing import note
from carteiro.cli.progress import count_done
from carteiro.dead_letters.redrive import redrive_matching
from carteiro.model import DeadFilter, RedriveAnswer
from carteiro.runtime.acting import user

_CODES = {
    RedriveAnswer.REDRIVEN: ExitCode.OK,
    RedriveAnswer.NOT_FOUND: ExitCode.NOT_FOUND,
    RedriveAnswer.ALREADY: ExitCode.REFUSED,
    RedriveAnswer.NO_CONTENT: ExitCode.REFUSED,
    RedriveAnswer.CHANGED: ExitCode.REFUSED,
}


@at_a_desk
async def redrive(  # noqa: PLR0913 - a parameter per flag
    desk: Desk,
    messages: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The messages.")
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Redrive all that match the options, instead of ids.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(
            parser=a_rate, metavar="NUMBER", help="Rate limit with --all, in messages a second."
        ),
    ] = None,
    choice: Choice,
    yes: Yes = False,
) -> None:
    """Redrive dead letters: each gets new attempts and a new time to live.

    Give ids, or --all for every one that matches. Messages that were redriven already are not sent twice.
    """
    if bool(messages) == everything:
        raise WrongUse("give the ids of messages, or --all with options that select them")
    await desk.remember_provider()
    if messages:
        await _redrive_these(desk, messages, choice.tenant)
    else:
        wanted = await choice.as_filter(desk, is_redriven=False)
        confirm(f"Send {'all' if choice.is_any else 'matching'} dead letters again?", yes=yes)
        await _redrive_matching(desk, wanted, rate)


async def _redrive_these(desk: Desk, messages: Sequence[str], tenant: str | None) -> None:
    # By the message, not by the entry: a dead message whose entry was removed is redriven too.
    known = [await known_message(desk, each, tenant=tenant) for each in messages]
    answers = await desk.backend.dead_letters.redrive([each.id for each in known], by=user())
    for message, answer in zip(known, answers, strict=True):
        if answer is RedriveAnswer.NOT_FOUND:
            note(f"Message {message.id} is not a dead letter: it is {message.state}.")
    pairs = [(message.id, answer) for message, answer in zip(known, answers, strict=True)]
    print_answers(desk, pairs, _CODES)


async def _redrive_matching(desk: Desk, wanted: DeadFilter, rate: float | None) -> None:
    with count_done("redriven") as tell:
        tally = await redrive_matching(
            desk.backend.dead_letters,
            wanted,
            by=user(),
            rate=rate,
            progress=lambda tally: tell(tally[RedriveAnswer.REDRIVEN]),
        )
    redriven, left = tally[RedriveAnswer.REDRIVEN], tally[RedriveAnswer.NO_CONTENT]
    past = f" {left} cannot be redriven: their content was pruned." if left else ""
    document = {
        "redriven": redriven,
        "already": tally[RedriveAnswer.ALREADY],
        "notFound": tally[RedriveAnswer.NOT_FOUND],
        "noContent": left,
    }
    desk.out.answer(document, f"Redriven: {redriven}.{past}")
