"""A dead message goes round again, inside one transaction: the entry, its job and, if it was edited, its content.

Killed anywhere, nothing of it is seen: neither new content without a new round nor a round without a job.
"""

import sqlite3
from collections.abc import Sequence

from carteiro.model import MessageId, RedriveAnswer, Revision, TenantId
from carteiro.policy import lifecycle
from carteiro.stores.sqlite.accept import meet
from carteiro.stores.sqlite.ledger import Changes, load
from carteiro.stores.sqlite.rows import as_json, run


def redrive(  # noqa: PLR0913 - what is asked, and of whom
    db: sqlite3.Connection,
    ids: Sequence[MessageId],
    *,
    by: str,
    revision: Revision | None,
    now: int,
    has_queue: bool = True,
) -> list[RedriveAnswer]:
    """Send dead messages round again, each once."""
    has_content = {row[0] for row in run(db, "redrive_contents", ids=as_json(ids))}
    found = load(db, ids)
    changes = Changes(db, now, has_queue=has_queue)
    answers, redriven = [], []
    for identity in ids:
        entry = found[identity].entry
        if entry is None:
            answers.append(RedriveAnswer.NOT_FOUND)
            continue
        answer, change = lifecycle.redrive(
            entry,
            by=by,
            has_content=identity in has_content,
            now=now,
            revision=revision,
        )
        if change is not None:
            changes.apply(found[identity], change)
            changes.touch(entry.kind, entry.tenant, now, jobs=1)
            redriven.append(identity)
            if revision is not None:
                _revise(db, identity, entry.tenant, revision, now)
        answers.append(answer)
    changes.save()
    if redriven:
        if has_queue:
            numbers = [found[identity].message_no for identity in redriven]
            run(db, "put_ready", numbers=as_json(numbers))
        run(db, "redrive_mark", ids=as_json(redriven), now=now)
    return answers


def _revise(
    db: sqlite3.Connection, message: MessageId, tenant: TenantId, revision: Revision, now: int
) -> None:
    told = revision.recipient
    recipient = None if told is None else meet(db, tenant, told, now)
    run(db, "revise_content", id=message, content=revision.content)
    run(
        db,
        "revise_message",
        id=message,
        to=revision.to,
        subject=revision.subject,
        recipient_id=recipient,
    )
