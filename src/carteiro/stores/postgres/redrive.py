"""A dead message goes round again, inside one transaction: the entry, its job and, if it was edited, its content.

Killed anywhere, nothing of it is seen: neither new content without a new round nor a round without a job.
"""

from collections.abc import Sequence

from carteiro.errors import StoreUnavailable
from carteiro.model import MessageId, RedriveAnswer, Revision
from carteiro.policy import lifecycle
from carteiro.stores.postgres.accept import meet
from carteiro.stores.postgres.changes import Changes, Held
from carteiro.stores.postgres.database import Session
from carteiro.stores.postgres.ledger import load


async def redrive(  # noqa: PLR0913 - what is asked, and of whom
    session: Session,
    ids: Sequence[MessageId],
    *,
    by: str,
    revision: Revision | None,
    now: int,
    has_queue: bool = True,
) -> list[RedriveAnswer]:
    """Send dead messages round again, each once. Their entries are held: what is judged is what is stored."""
    await session.fetch("redrive_lock", ids)
    found = await load(session, ids)
    numbers = [held.message_no for held in found.values()]
    has_content = {row[0] for row in await session.fetch("redrive_contents", numbers)}
    changes = Changes(now)
    answers = []
    for identity in ids:
        held = found.get(identity)
        if held is None or held.entry is None:
            answers.append(RedriveAnswer.NOT_FOUND)
            continue
        answer, change = lifecycle.redrive(
            held.entry,
            by=by,
            has_content=held.message_no in has_content,
            now=now,
            revision=revision,
        )
        if change is not None:
            changes.apply(held, change)
        answers.append(answer)
    if changes.held:
        await _store(session, changes, revision, has_queue=has_queue)
    return answers


async def _store(
    session: Session, changes: Changes, revision: Revision | None, *, has_queue: bool
) -> None:
    stored, _ = await changes.save(session)
    if len(stored) < len(changes.held):  # a worker still has the job of what has ended
        raise StoreUnavailable("A worker is just letting go of one of the messages: try again")
    if has_queue:
        await session.fetch("redrive_put", [held.message_no for held in changes.held], changes.now)
    await session.fetch("redrive_mark", [held.id for held in changes.held], changes.now)
    if revision is not None:
        [held] = changes.held
        await _revise(session, held, revision, changes.now)


async def _revise(session: Session, held: Held, revision: Revision, now: int) -> None:
    told = revision.recipient
    recipient = (
        None
        if told is None or held.entry is None
        else await meet(session, held.entry.tenant, told, now)
    )
    await session.fetch(
        "revise", held.message_no, revision.content, revision.to, revision.subject, recipient
    )
