"""``carteiro dead ls | show | group``: show dead letters."""

from collections.abc import Awaitable
from typing import Annotated

import typer

from carteiro.cli.dead.choice import Choice
from carteiro.cli.dead.letters import COLUMNS, address_of, content_of, known_letter
from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.documents import document_of
from carteiro.cli.groups import print_groups
from carteiro.cli.options import Limit, MessageArgument, OfTenant
from carteiro.cli.paging import print_pages
from carteiro.cli.show import TIMELINE
from carteiro.dead_letters.redrive import causes_of
from carteiro.model import EMAIL, Cursor, DeadLetter, Page
from carteiro.ports.dead_letters import GroupBy
from carteiro.runtime.awaited_recoveries import awaited_recovery_of
from carteiro.views.dead_letters import to_json

_BEGINNING = 200
_PAGE = 50


@at_a_desk
async def ls(
    desk: Desk,
    *,
    choice: Choice,
    redriven: Annotated[
        bool | None, typer.Option(help="Only those that were, or were not, redriven.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """List dead letters, newest first."""
    wanted = await choice.as_filter(desk, is_redriven=redriven)
    letters = desk.backend.dead_letters

    def ask(*, cursor: Cursor | None, limit: int) -> Awaitable[Page[DeadLetter]]:
        """A small page: contents may be a megabyte each."""
        return letters.find(wanted, cursor=cursor, limit=min(limit, _PAGE))

    await print_pages(desk.out, ask, COLUMNS, to_json, what="dead letters", limit=limit)


@at_a_desk
async def show(desk: Desk, message: MessageArgument, *, tenant: OfTenant = None) -> None:
    """Show one dead letter with its history, and what it waits for."""
    letter = await known_letter(desk, message, tenant=tenant)
    events = await desk.backend.reading.events(letter.id)
    told = await awaited_recovery_of(desk.backend, letter, plan=desk.settings.automatic_plan)
    facts = {"automatic redrive": told.text, "not before": told.not_before}
    document = to_json(letter, events) | {"automaticRedrive": document_of(told)}
    desk.out.thing(document, _facts(letter) | facts)
    desk.out.beside("Timeline", events, TIMELINE)


@at_a_desk
async def group(
    desk: Desk,
    *,
    by: Annotated[GroupBy, typer.Option(help="Field to group by.")] = "code",
    choice: Choice,
) -> None:
    """Count dead letters by a field, the largest group first."""
    wanted = await choice.as_filter(desk)
    groups = await desk.backend.dead_letters.group(by, wanted)
    causes = await causes_of(desk.backend.failures, wanted.tenant) if by == "group" else None
    print_groups(desk.out, by, groups, what="dead letters", causes=causes)


def _beginning(letter: DeadLetter) -> dict[str, object]:
    """Address and subject of an e-mail, on two lines; its document has all of it."""
    if letter.kind != EMAIL:
        return {}
    content = content_of(letter)
    name = "html" if content.get("html") and not content.get("text") else "text"
    words = " ".join(str(content.get(name) or "").split())
    return {
        "subject": content.get("subject"),
        name: words if len(words) <= _BEGINNING else f"{words[:_BEGINNING]}…",
    }


def _facts(letter: DeadLetter) -> dict[str, object]:
    failure = letter.failure
    return {
        "id": letter.id,
        "tenant": letter.tenant,
        "to": address_of(letter),
        **_beginning(letter),
        "reason": letter.reason,
        "error": f"{failure.code}: {failure.reason}",
        "category": failure.category,
        "provider's code": failure.original_code,
        "group": letter.group,
        "failures": letter.failed_attempts,
        "failed": letter.failed_at,
        "accepted": letter.enqueued_at,
        "died": letter.moved_at,
        "kept until": letter.moved_at + letter.ttl,
        "redriven": letter.redriven_at,
    }
