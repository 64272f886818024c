"""Redrives dead messages, inside one transaction: the entry, its job and, if it was edited, its content.

If killed anywhere, nothing is stored: neither new content without a new round nor a round without a job.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from carteiro.errors import StoreUnavailable
from carteiro.model import MessageId, RedriveAnswer, Revision, TenantId, Via
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import Change
from carteiro.runtime.acting import actor
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.door import lock, meet, names_of
from carteiro.stores.sql.ledger import Entries
from carteiro.stores.sql.session import Session


async def redrive(  # noqa: PLR0913 - what is asked, and of whom
    session: Session,
    entries: Entries,
    ids: Sequence[MessageId],
    *,
    by: str,
    revision: Revision | None,
    now: int,
    has_queue: bool,
    is_automatic: bool = False,
) -> list[RedriveAnswer]:
    """Redrive dead messages, each once. Their entries are locked, so they cannot change between judging and storing."""
    await session.run("redrive_lock", ids=ids)
    found = await entries.load(session, ids)
    numbers = [held.message_no for held in found.values()]
    has_content = {row[0] for row in await session.fetch("redrive_contents", numbers=numbers)}
    changed: list[tuple[Any, Change]] = []
    answers = []
    for identity in ids:
        held = found.get(identity)
        if held is None or held.entry is None:
            answers.append(RedriveAnswer.NOT_FOUND)
            continue
        is_whole = held.message_no in has_content
        answer, change = lifecycle.redrive(
            held.entry,
            by=by,
            has_content=is_whole,
            now=now,
            revision=revision,
            is_automatic=is_automatic,
        )
        if change is not None:
            changed.append((held, change))
        answers.append(answer)
    if changed:
        stored, _ = await entries.save(session, changed, now)
        if stored < len(changed):  # a worker still has the job of a message that has ended
            raise StoreUnavailable("A worker is still releasing one of the messages: try again")
        redriven = [held for held, _ in changed]
        if has_queue:
            numbers = [held.message_no for held in redriven]
            await session.run("redrive_put", numbers=numbers, now=now)
        marked = [held.id for held in redriven]
        await session.run("redrive_mark", ids=marked, now=now, is_automatic=is_automatic)
        if revision is not None:
            await _revise(session, changed[0][0], revision, now)
        letters = [(held.id, held.entry.tenant) for held in redriven]
        if revision is None:
            await note_letters(session, now, "redrive", letters)
        else:
            (edited, tenant), after = letters[0], {"fields": revision.fields}
            await note(session, now, Noted("edit", "dead letter", edited, tenant, after=after))
    return answers


async def note_letters(
    session: Session, now: int, action: str, letters: Iterable[tuple[MessageId, TenantId]]
) -> None:
    """Record an action on dead letters, a row for each tenant: the message, or of many the number and the first ids."""
    tenants: dict[TenantId, list[MessageId]] = defaultdict(list)
    for identity, tenant in letters:
        tenants[tenant].append(identity)
    is_automatic = actor().via is Via.UPKEEP  # its rows of a day are one, and say the same
    rows = []
    for tenant, ids in tenants.items():
        is_one = len(ids) == 1 and not is_automatic
        after = None if is_one or is_automatic else {"count": len(ids), "ids": ids}
        rows.append(Noted(action, "dead letter", ids[0] if is_one else "", tenant, after=after))
    await note(session, now, *rows)


async def _revise(session: Session, held: Any, revision: Revision, now: int) -> None:  # noqa: ANN401 - see `Ledger`
    told, recipient = revision.recipient, None
    if told is not None:
        await lock(session, names_of(held.entry.tenant, told))
        recipient = await meet(session, held.entry.tenant, told, now)
    await session.run(
        "revise",
        number=held.message_no,
        content=revision.content,
        to=revision.to,
        subject=revision.subject,
        recipient_id=recipient,
    )
