"""``carteiro prune``: delete data past its retention, now."""

from datetime import timedelta
from typing import Annotated

import typer

from carteiro.cli.desk import Desk, at_a_desk, confirm
from carteiro.cli.options import Yes, duration, in_words
from carteiro.cli.progress import count_done
from carteiro.ports.upkeep import Pruned

_PAGE = 1000


@at_a_desk
async def prune(
    desk: Desk,
    *,
    bodies: Annotated[
        timedelta | None, duration("Time to keep contents: 30d (default: settings).")
    ] = None,
    history: Annotated[
        timedelta | None, duration("Time to keep messages: 365d (default: settings).")
    ] = None,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Rewrite the file to its smallest size; other processes wait meanwhile.",
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete all data that is past its retention: contents, messages, dead letters, figures, audit rows and others.

    Without options the settings apply, as for a worker. Unfinished messages are never deleted.
    """
    if bodies is not None or history is not None:
        confirm(_question(bodies, history), yes=yes)
    retention = desk.settings.retention
    pruned = await _pruned(
        desk,
        retention.bodies if bodies is None else bodies,
        retention.history if history is None else history,
    )
    letters = await _outlived(desk)
    figures = await _figures(desk)
    freed = await desk.backend.upkeep.compact() if compact else 0
    document = {
        "bodies": pruned.bodies,
        "messages": pruned.histories,
        "idempotencyKeys": pruned.keys,
        "auditRows": pruned.audit,
        "alerts": pruned.alerts,
        "inboxMails": pruned.inbox,
        "deadLetters": letters,
        "figures": figures,
    }
    if compact:
        document["freedBytes"] = freed
    sentence = (
        f"Dropped {pruned.bodies} contents, {pruned.histories} messages, "
        f"{pruned.keys} idempotency keys, {pruned.audit} audit rows, {pruned.alerts} alerts, {pruned.inbox} mails of "
        f"the sandbox, {letters} dead letters and {figures} rows of figures."
        + (f" The file is {freed:,} bytes smaller." if compact else "")
    )
    desk.out.answer(document, sentence)


def _question(bodies: timedelta | None, history: timedelta | None) -> str:
    parts = [
        f"{what} older than {in_words(kept)}"
        for what, kept in (("contents", bodies), ("messages", history))
        if kept is not None
    ]
    return f"Permanently delete {' and '.join(parts)}?"


async def _pruned(desk: Desk, bodies: timedelta | None, history: timedelta | None) -> Pruned:
    """A whole pass over the ledger, added up."""
    total = Pruned(0, 0, None)
    with count_done("pruned") as tell:
        while True:
            page = await desk.backend.upkeep.prune(
                bodies=bodies,
                histories=history,
                kept=desk.settings.retention.kept,
                after=total.after,
                limit=_PAGE,
            )
            messages = total.bodies + page.bodies, total.histories + page.histories
            both = zip(total.others, page.others, strict=True)
            keys, audit, alerts, mails = (one + other for one, other in both)
            total = Pruned(*messages, page.after, keys, audit, alerts, mails)
            tell(total.bodies + total.histories + sum(total.others))
            if page.after is None and not page.has_more:
                return total


async def _figures(desk: Desk) -> int:
    """Minutes and hours of figures and of failure groups; the notes that are not added up yet are not of them."""
    kept, ports, count = desk.settings.rollups, desk.backend, 0
    while True:
        page = await ports.failures.prune(older=kept.failures, limit=_PAGE)
        page += await ports.rollups.prune(minutes=kept.minutes, hours=kept.hours, limit=_PAGE)
        count += page
        if page < _PAGE:
            return count


async def _outlived(desk: Desk) -> int:
    dropped = 0
    while ids := await desk.backend.dead_letters.outlived(limit=_PAGE):
        went = await desk.backend.dead_letters.drop(ids)
        dropped += went
        if not went:
            break
    return dropped
