"""Accepts messages: one statement where possible, a short transaction if keys or limits must be checked.

If killed before the commit, nothing was stored and no answer was sent. If killed after it, a second request with the
same id or key gets the first answer.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from uuid_utils import uuid7

from carteiro import model
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import in_ms, moment
from carteiro.stores.postgres.database import Database, Session, again_after_deadlock
from carteiro.stores.postgres.literals import few_texts, joined, numbers, once, texts
from carteiro.stores.sql.door import Told, admit, limits_of, lock, names_of
from carteiro.stores.sql.session import Session as SqlSession

_Recipients = Sequence[model.RecipientId | None]


async def accept(
    db: Database, new: Sequence[model.NewMessage], now: int
) -> list[model.AcceptAnswer]:
    """Commit messages and jobs; a known id or key is replayed."""
    if any(map(_needs_door, new)):
        return await again_after_deadlock(
            db.transaction, lambda session: accept_within(session, new, now)
        )
    return await _put(db, new, [None] * len(new), now)


async def accept_within(
    session: Session, new: Sequence[model.NewMessage], now: int
) -> list[model.AcceptAnswer]:
    """As `accept`, inside a transaction, ours or the caller's own."""
    if not any(map(_needs_door, new)):
        return await _put(session, new, [None] * len(new), now)
    await lock(session, (name for each in new for name in _names(each)))
    door, answers, fresh = await admit(session, new, now, _meet)
    messages, recipients = [each for each, _ in fresh], [recipient for _, recipient in fresh]
    put = iter(await _put(session, messages, recipients, now) if fresh else ())
    rows = [(each.id, each.row.user_id, each.row.max_retries) for each in messages if each.row]
    if rows:  # of the table queue
        await session.fetch("accept_rows", *map(list, zip(*rows, strict=True)))
    await door.save(session, fresh, now)
    return [next(put) if answer is None else answer for answer in answers]


async def _meet(session: SqlSession, told: Sequence[Told], now: int) -> list[model.RecipientId]:
    """As `meet`, of many: one statement."""
    rows = [
        (str(uuid7()), tenant, to.email, to.external_id, to.cpf_cnpj_hash, to.razao_social, to.nome)
        for tenant, to in told
    ]
    met: list[model.RecipientId] = await session.value("recipients_meet", rows=rows, now=now)
    return met


def _needs_door(message: model.NewMessage) -> bool:
    limits = message.limits
    is_counted = limits is not None and limits.has_any
    stands_alone = message.key is None and message.recipient is None and message.row is None
    return is_counted or not stands_alone


def _names(message: model.NewMessage) -> Iterator[str]:
    """The locks that a message needs."""
    if message.key is not None:
        yield f"key {message.tenant} {message.key.key}"
    if message.limits is not None and message.limits.has_any:
        yield limits_of(message.tenant)
    if message.recipient is not None:
        yield from names_of(message.tenant, message.recipient)


async def _put(
    session: Session | Database, new: Sequence[model.NewMessage], recipients: _Recipients, now: int
) -> list[model.AcceptAnswer]:
    at = moment(now)
    answers: list[model.AcceptAnswer] = [
        model.Accepted(message.id, at, recipient)
        for message, recipient in zip(new, recipients, strict=True)
    ]
    for item, why, *known in await session.fetch("accept", **_parameters(new, recipients, now)):
        answers[item - 1] = _refused(new[item - 1], why, known)
    return answers


def _refused(message: model.NewMessage, why: str, known: Sequence[Any]) -> model.AcceptAnswer:
    match why:
        case "known":
            created_at, recipient, request_id = known
            return model.Replayed(
                model.MessageId(message.id), moment(created_at), recipient, request_id
            )
        case "disabled":
            return model.TenantDisabled(message.tenant)
        case _:
            return model.TenantUnknown(message.tenant)


def _parameters(
    new: Sequence[model.NewMessage], recipients: _Recipients, now: int
) -> dict[str, object]:
    tags = [(item, tag) for item, message in enumerate(new, 1) for tag in message.tags]
    content, mark = joined([each.content for each in new])
    few_tags = [orjson.dumps(each.tags).decode() if each.tags else None for each in new]
    return {
        "id": texts([each.id for each in new]),
        "tenant": texts([each.tenant for each in new]),
        "kind": texts(once([each.kind for each in new])),
        "declares": numbers(once([each.declares for each in new])),
        "delivery": texts(once([each.delivery for each in new])),
        "priority": numbers(once([each.priority for each in new])),
        "ttl_ms": numbers([each // MILLISECOND for each in once([each.ttl for each in new])]),
        "request_id": texts(once([each.request_id for each in new])),
        "external_id": few_texts([each.external_id for each in new]),
        "recipient_id": few_texts(recipients),
        "to_address": few_texts([each.to for each in new]),
        "subject": few_texts([each.subject for each in new]),
        "template_type": few_texts([each.template_type for each in new]),
        "tags": few_texts(few_tags),
        "due_at": numbers(
            [
                now if due is None else max(now, in_ms(due))
                for due in once([each.due for each in new])
            ]
        ),
        "content": content,
        "mark": mark,
        "tag_item": numbers([item for item, _ in tags]),
        "tag": texts([tag for _, tag in tags]),
        "now": now,
    }
