"""``carteiro dead redrive``: send dead letters again."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from carteiro.cli.dead.choice import Choice
from carteiro.cli.desk import Desk, at_a_desk, confirm
from carteiro.cli.exit_codes import ExitCode, NotNow, WrongUse
from carteiro.cli.groups import columns
from carteiro.cli.messages import known_message, print_answers
from carteiro.cli.options import Yes, a_rate, in_words
from carteiro.cli.printing import note
from carteiro.dead_letters.redrive import plan_redrive, start_redrive
from carteiro.model import Ramp, RedriveAnswer, RedrivePlan, TooManyRedrives
from carteiro.policy.ramp import expected
from carteiro.runtime.acting import user
from carteiro.views.redrives import plan_json, redrive_json

_CODES = {
    RedriveAnswer.REDRIVEN: ExitCode.OK,
    RedriveAnswer.NOT_FOUND: ExitCode.NOT_FOUND,
    RedriveAnswer.ALREADY: ExitCode.REFUSED,
    RedriveAnswer.NO_CONTENT: ExitCode.REFUSED,
    RedriveAnswer.CHANGED: ExitCode.REFUSED,
}


_SILENCE = timedelta(seconds=30)  # of upkeep: then no worker is running
_USUAL = Ramp()


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
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="With --all: print the plan (number, groups, tenants, sample), and redrive nothing.",
        ),
    ] = False,
    canary: Annotated[
        int, typer.Option(min=1, max=100, help="With --all: messages to send first.")
    ] = _USUAL.canary,
    rate: Annotated[
        float,
        typer.Option(
            parser=a_rate,
            metavar="NUMBER",
            help="With --all: maximum rate, in messages a second.",
        ),
    ] = _USUAL.max_rate,
    max_failed: Annotated[
        float,
        typer.Option(min=0, max=1, help="With --all: share of failures that stops the redrive."),
    ] = _USUAL.max_failed,
    choice: Choice,
    yes: Yes = False,
) -> None:
    """Redrive dead letters: each gets new attempts and a new time to live.

    Give ids, or --all for every one that matches. --all starts a job: it sends a few first, doubles its
    rate while they succeed, and stops by itself if they fail; see carteiro redrives. Messages that were
    already redriven are skipped.
    """
    if bool(messages) == everything:
        raise WrongUse("give the ids of messages, or --all with options that select them")
    await desk.remember_provider()
    if messages:
        await _redrive_these(desk, messages, choice.tenant)
    else:
        ramp = Ramp(canary, min(_USUAL.first_rate, rate), rate, max_failed)
        await _start(desk, choice, ramp, only_plan=plan, yes=yes)


async def _redrive_these(desk: Desk, messages: Sequence[str], tenant: str | None) -> None:
    # By the message, not by the entry: a dead message whose entry was removed is redriven too.
    known = [await known_message(desk, each, tenant=tenant) for each in messages]
    answers = await desk.backend.dead_letters.redrive([each.id for each in known], by=user())
    for message, answer in zip(known, answers, strict=True):
        if answer is RedriveAnswer.NOT_FOUND:
            note(f"Message {message.id} is not a dead letter: it is {message.state}.")
    pairs = [(message.id, answer) for message, answer in zip(known, answers, strict=True)]
    print_answers(desk, pairs, _CODES)


async def _start(desk: Desk, choice: Choice, ramp: Ramp, *, only_plan: bool, yes: bool) -> None:
    wanted = await choice.as_filter(desk)
    plan = await plan_redrive(desk.backend, wanted)
    if only_plan:
        _print_plan(desk, plan, ramp)
        return
    if not plan.total:
        note("No matching dead letters found: there is nothing to redrive.")
        return
    time = in_words(expected(plan.total, ramp))
    which = "all" if choice.is_any else "matching"
    confirm(f"Send {which} dead letters again: {plan.total}, in about {time}?", yes=yes)
    started = await start_redrive(desk.backend, wanted, by=user(), ramp=ramp)
    if isinstance(started, TooManyRedrives):
        whose = "of the same tenants" if started.of_tenant else "in all"
        raise NotNow(f"{started.most} redrives are open {whose}: carteiro redrives cancel ends one")
    sentence = f"Redrive {started.id} of {started.total} is running: carteiro redrives show {started.id} follows it."
    desk.out.answer(redrive_json(started), sentence)
    seen = await desk.backend.upkeep.last_seen()
    if seen is None or datetime.now(UTC) - seen > _SILENCE:
        note("No worker is running: the redrive continues with carteiro worker, up or process.")


def _print_plan(desk: Desk, plan: RedrivePlan, ramp: Ramp) -> None:
    time = in_words(expected(plan.total, ramp))
    facts = {"total": plan.total, "expected time": time, "sample": tuple(plan.sample)}
    desk.out.thing(plan_json(plan, ramp), facts)
    desk.out.beside("Groups", plan.groups, columns("group", plan.causes))
    desk.out.beside("Tenants", plan.tenants, columns("tenant"))
