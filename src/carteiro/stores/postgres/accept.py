"""Takes messages in: one statement for those that stand alone, a short transaction where keys or limits count.

Killed before the commit, nothing was stored and nobody was answered; after it, whoever asks again
under the same id or key gets the first answer.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import orjson
from uuid_utils import uuid7

from carteiro.model import (
    AcceptAnswer,
    Accepted,
    ApiLimits,
    Charged,
    MessageId,
    NewMessage,
    NewRecipient,
    RecipientId,
    Replayed,
    TenantDisabled,
    TenantId,
    TenantUnknown,
)
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.quota import KEY_LIFE_MS, Tally
from carteiro.stores.columns import in_ms, moment
from carteiro.stores.door import Door, First
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.postgres.literals import few_texts, numbers, texts

_Recipients = Sequence[RecipientId | None]


async def accept(db: Database, new: Sequence[NewMessage], now: int) -> list[AcceptAnswer]:
    """Commit messages and jobs; what is known already is replayed."""
    if any(map(_needs_door, new)):
        async with db.transaction() as session:
            return await accept_within(session, new, now)
    return await _put(db, new, [None] * len(new), now)


async def accept_within(
    session: Session, new: Sequence[NewMessage], now: int
) -> list[AcceptAnswer]:
    """The same inside a transaction, ours or the caller's own."""
    if not any(map(_needs_door, new)):
        return await _put(session, new, [None] * len(new), now)
    await lock(session, (name for each in new for name in _names(each)))
    door = await _door(session, new, now)
    answers: list[AcceptAnswer | None] = []
    fresh: list[NewMessage] = []
    recipients: list[RecipientId | None] = []
    for message in new:
        answer = door.refusal(message)
        if answer is None:
            told = message.recipient
            recipient = None if told is None else await _met(session, message.tenant, told, now)
            door.let_in(message, recipient)
            fresh.append(message)
            recipients.append(recipient)
        answers.append(answer)
    put = iter(await _put(session, fresh, recipients, now) if fresh else ())
    await _save(session, door, now)
    await _show(session, fresh)
    return [next(put) if answer is None else answer for answer in answers]


def _needs_door(message: NewMessage) -> bool:
    limits = message.limits
    is_counted = limits is not None and limits.has_any
    stands_alone = message.key is None and message.recipient is None and message.row is None
    return is_counted or not stands_alone


def _names(message: NewMessage) -> Iterator[str]:
    """What a message must be alone with."""
    if message.key is not None:
        yield f"key {message.tenant} {message.key.key}"
    if message.limits is not None and message.limits.has_any:
        yield _limits_of(message.tenant)
    if message.recipient is not None:
        yield from _names_of(message.tenant, message.recipient)


def _limits_of(tenant: TenantId) -> str:
    return f"limits {tenant}"


def _names_of(tenant: TenantId, told: NewRecipient) -> Iterator[str]:
    if told.recipient_id is None:
        yield f"recipient {tenant} {told.external_id}"
        yield f"document {tenant} {told.cpf_cnpj_hash}"


async def lock(session: Session, names: Iterable[str]) -> None:
    """Keep others away until the transaction ends; in one order, so that nobody waits in a circle."""
    await session.fetch("accept_lock", sorted(set(map(_number, names))))


def _number(name: str) -> int:
    digest = blake2b(name.encode(), digest_size=8, person=b"carteiro").digest()
    return int.from_bytes(digest, signed=True)


async def _door(session: Session, new: Sequence[NewMessage], now: int) -> Door:
    known = {
        row[0]: Replayed(row[0], moment(row[1]), row[2], row[3])
        for row in await session.fetch("accept_known", [each.id for each in new])
    }
    tenants = await session.fetch("accept_tenants", list({each.tenant for each in new}))
    keys = [(each.tenant, each.key.key) for each in new if each.key is not None]
    firsts = await firsts_under(session, keys, now) if keys else {}
    return Door(
        known, {row[0]: row[1] for row in tenants}, firsts, await _tallies(session, new, now), now
    )


async def firsts_under(
    session: Session | Database, keys: Sequence[tuple[TenantId, str]], now: int
) -> dict[tuple[TenantId, str], First]:
    """What keys stand for, each of its tenant; those that stand for nothing, or no longer, are left out."""
    tenants, names = [tenant for tenant, _ in keys], [key for _, key in keys]
    rows = await session.fetch("accept_keys", tenants, names, now - KEY_LIFE_MS)
    return {
        (tenant, key): First(digest, Replayed(identity, moment(at), recipient, request_id))
        for tenant, key, digest, identity, recipient, request_id, at in rows
    }


async def _tallies(session: Session, new: Sequence[NewMessage], now: int) -> dict[TenantId, Tally]:
    counted: dict[TenantId, list[tuple[int, int, int]]] = {
        each.tenant: [] for each in new if each.limits is not None and each.limits.has_any
    }
    if counted:
        for tenant, *row in await session.fetch("accept_counts", list(counted)):
            counted[tenant].append((row[0], row[1], row[2]))
    return {tenant: Tally(now, rows) for tenant, rows in counted.items()}


async def charge(
    session: Session, tenant: TenantId, refused: int, limits: ApiLimits, now: int
) -> Charged:
    """Count messages that were refused as those that are accepted; the counts alone are written."""
    await lock(session, [_limits_of(tenant)])
    if not await session.fetch("accept_tenants", [tenant]):
        return Charged(0)
    rows = await session.fetch("accept_counts", [tenant])
    tally = Tally(now, [(row[1], row[2], row[3]) for row in rows])
    charged = tally.charge(refused, limits)
    if charged.counted:
        counts = [(tenant, *row) for row in tally.rows()]
        await session.fetch("accept_save_counts", *map(list, zip(*counts, strict=True)))
    return charged


async def _save(session: Session, door: Door, now: int) -> None:
    """Write the keys and the counts."""
    if door.keys:
        await session.fetch("accept_save_keys", *map(list, zip(*door.keys, strict=True)), now)
    if counts := door.counts():
        await session.fetch("accept_save_counts", *map(list, zip(*counts, strict=True)))


async def _show(session: Session, new: Sequence[NewMessage]) -> None:
    """Write the rows of the table queue."""
    rows = [(each.id, each.row.user_id, each.row.max_retries) for each in new if each.row]
    if rows:
        await session.fetch("accept_rows", *map(list, zip(*rows, strict=True)))


async def meet(session: Session, tenant: TenantId, told: NewRecipient, now: int) -> RecipientId:
    """The id of the recipient that the tenant means: as given, else of one it knows, else of a new one."""
    await lock(session, _names_of(tenant, told))
    return await _met(session, tenant, told, now)


async def _met(session: Session, tenant: TenantId, told: NewRecipient, now: int) -> RecipientId:
    if told.recipient_id is not None:
        return told.recipient_id  # a given id is looked up by confirm, never made up here
    known = await session.value("recipient_known", tenant, told.external_id, told.cpf_cnpj_hash)
    identity = RecipientId(known or str(uuid7()))
    fields = (
        identity,
        told.email,
        told.external_id,
        told.cpf_cnpj_hash,
        told.razao_social,
        told.nome,
    )
    if known:
        await session.fetch("recipient_update", *fields)
    else:
        await session.fetch("recipient_insert", *fields, tenant, now)
    return identity


async def _put(
    session: Session | Database, new: Sequence[NewMessage], recipients: _Recipients, now: int
) -> list[AcceptAnswer]:
    at = moment(now)
    answers: list[AcceptAnswer] = [
        Accepted(message.id, at, recipient)
        for message, recipient in zip(new, recipients, strict=True)
    ]
    for item, why, *known in await session.fetch("accept", *_parameters(new, recipients, now)):
        answers[item - 1] = _refused(new[item - 1], why, known)
    return answers


def _refused(message: NewMessage, why: str, known: Sequence[Any]) -> AcceptAnswer:
    match why:
        case "known":
            created_at, recipient, request_id = known
            return Replayed(MessageId(message.id), moment(created_at), recipient, request_id)
        case "disabled":
            return TenantDisabled(message.tenant)
        case _:
            return TenantUnknown(message.tenant)


def _parameters(new: Sequence[NewMessage], recipients: _Recipients, now: int) -> tuple[object, ...]:
    events = [
        (item, event.type, orjson.dumps(event.metadata).decode(), now - event.ago // MILLISECOND)
        for item, message in enumerate(new, 1)
        for event in message.events
    ]
    tags = [(item, tag) for item, message in enumerate(new, 1) for tag in message.tags]
    return (
        texts([each.id for each in new]),
        texts([each.tenant for each in new]),
        texts([each.kind for each in new]),
        numbers([each.declares for each in new]),
        texts([each.delivery for each in new]),
        numbers([each.priority for each in new]),
        numbers([each.ttl // MILLISECOND for each in new]),
        texts([each.request_id for each in new]),
        few_texts([each.external_id for each in new]),
        few_texts(recipients),
        few_texts([each.to for each in new]),
        few_texts([each.subject for each in new]),
        few_texts([each.template_type for each in new]),
        few_texts([orjson.dumps(each.tags).decode() if each.tags else None for each in new]),
        numbers([now if each.due is None else max(now, in_ms(each.due)) for each in new]),
        texts([each.content for each in new]),
        numbers([event[0] for event in events]),
        texts([event[1] for event in events]),
        texts([event[2] for event in events]),
        numbers([event[3] for event in events]),
        numbers([item for item, _ in tags]),
        texts([tag for _, tag in tags]),
        now,
    )
