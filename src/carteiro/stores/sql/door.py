"""Admission: replays known ids and keys, refuses disabled tenants and exceeded limits, stores keys and counts."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from uuid_utils import uuid7

from carteiro import model
from carteiro.model import ApiLimits, Charged, NewRecipient, RecipientId, Replayed, TenantId
from carteiro.policy.quota import KEY_LIFE_MS, QuotaCounts
from carteiro.stores.columns import moment
from carteiro.stores.sql.session import Session

Admitted: TypeAlias = tuple[model.NewMessage, RecipientId | None]  # and for which recipient
Told: TypeAlias = tuple[TenantId, NewRecipient]
Meeting: TypeAlias = Callable[[Session, Sequence[Told], int], Awaitable[list[RecipientId]]]

_NONE = (None, None, None)


class First(NamedTuple):
    """The answer that an idempotency key stands for."""

    digest: str
    answer: model.Replayed


@dataclass
class Door:
    """Judges one batch, item by item: each item sees the effects of those before it."""

    _known: dict[model.MessageId, model.Replayed]
    _is_disabled: dict[model.TenantId, bool]
    _firsts: dict[tuple[model.TenantId, str], First]
    _tallies: dict[model.TenantId, QuotaCounts]
    _at: datetime
    _counted: set[model.TenantId] = field(default_factory=set)
    _keyed: list[tuple[model.NewMessage, model.IdempotencyKey]] = field(default_factory=list)

    def is_open_to_all(self, new: Sequence[model.NewMessage]) -> bool:
        """True if all are new and of enabled tenants, and none has a key, a limit or a recipient: as usual."""
        enabled = {each for each, is_disabled in self._is_disabled.items() if not is_disabled}
        usual = {
            each.id
            for each in new
            if each.tenant in enabled
            and (each.key, each.limits, each.recipient) == _NONE
            and each.id not in self._known
        }
        return len(usual) == len(new)

    def refusal(self, message: model.NewMessage) -> model.AcceptAnswer | None:
        """The answer to a message that is not admitted; None counts it, and `let_in` must follow."""
        known = self._known.get(message.id)
        if known is not None:
            return known
        is_disabled = self._is_disabled.get(message.tenant)
        if is_disabled is None:
            return model.TenantUnknown(message.tenant)
        if is_disabled:
            return model.TenantDisabled(message.tenant)
        if message.key is None and message.limits is None:
            return None
        return self._asked_before(message) or self._over_limit(message)

    def let_in(self, message: model.NewMessage) -> None:
        """Remember the message and its key; its recipient is not known yet."""
        answer = model.Replayed(message.id, self._at, None, message.request_id)
        self._known[message.id] = answer
        if message.key is not None:
            self._firsts[message.tenant, message.key.key] = First(message.key.digest, answer)
            self._keyed.append((message, message.key))

    async def save(self, session: Session, fresh: Sequence[Admitted], now: int) -> None:
        """Store keys and counts, after the messages: on Postgres those lock their tenants, as an erasure does first."""
        if self._keyed:
            to = {message.id: recipient for message, recipient in fresh}
            keys = [
                (each.tenant, key.key, key.digest, each.id, to[each.id], each.request_id)
                for each, key in self._keyed
            ]
            await session.run("accept_save_keys", rows=keys, now=now)
        counts = [
            (each, *row) for each in sorted(self._counted) for row in self._tallies[each].rows()
        ]
        if counts:
            await session.run("accept_save_counts", rows=counts)

    def _asked_before(self, message: model.NewMessage) -> model.Replayed | model.KeyConflict | None:
        key = message.key
        first = self._firsts.get((message.tenant, key.key)) if key is not None else None
        if key is None or first is None:
            return None
        return first.answer if first.digest == key.digest else model.KeyConflict(first.answer.id)

    def _over_limit(self, message: model.NewMessage) -> model.OverLimit | None:
        """The limit that refuses the message; if there is none, the message is counted."""
        if message.limits is None or not message.limits.has_any:
            return None
        tally = self._tallies[message.tenant]
        refusal = tally.judge(message.limits)
        if refusal is None:
            tally.count()
            self._counted.add(message.tenant)
        return refusal


async def admit(
    session: Session, new: Sequence[model.NewMessage], now: int, meeting: Meeting
) -> tuple[Door, list[model.AcceptAnswer | None], list[Admitted]]:
    """Return the answer to each message, None for an admitted one; and those. `Door.save` must follow."""
    door = await _door(session, new, now)
    if door.is_open_to_all(new):
        return door, [None] * len(new), [(each, None) for each in new]
    answers: list[model.AcceptAnswer | None] = []
    fresh: list[model.NewMessage] = []
    for message in new:
        answer = door.refusal(message)
        if answer is None:
            door.let_in(message)
            fresh.append(message)
        answers.append(answer)
    met = await _met(session, fresh, now, meeting)
    if met:  # also in answers to repetitions of these messages
        answers = [
            replace(each, recipient_id=met[each.id])
            if isinstance(each, Replayed) and each.id in met
            else each
            for each in answers
        ]
    return door, answers, [(each, met.get(each.id) if met else None) for each in fresh]


async def _met(
    session: Session, fresh: Sequence[model.NewMessage], now: int, meeting: Meeting
) -> dict[model.MessageId, RecipientId]:
    """The recipients of messages; only those without a given id are looked up, or added."""
    told = [(each, each.recipient) for each in fresh if each.recipient is not None]
    met = {each.id: to.recipient_id for each, to in told if to.recipient_id is not None}
    asked = [(each, to) for each, to in told if to.recipient_id is None]
    if asked:
        found = await meeting(session, [(each.tenant, to) for each, to in asked], now)
        met |= {each.id: identity for (each, _), identity in zip(asked, found, strict=True)}
    return met


async def _door(session: Session, new: Sequence[model.NewMessage], now: int) -> Door:
    """Read only what the messages need."""
    rows = await session.fetch("accept_known", ids=[each.id for each in new])
    known = {row[0]: Replayed(row[0], moment(row[1]), row[2], row[3]) for row in rows}
    tenants = await session.fetch("accept_tenants", ids=list({each.tenant for each in new}))
    keys = [(each.tenant, each.key.key) for each in new if each.key is not None]
    firsts = await firsts_under(session, keys, now) if keys else {}
    is_disabled = {row[0]: bool(row[1]) for row in tenants}
    return Door(known, is_disabled, firsts, await _tallies(session, new, now), moment(now))


async def _tallies(
    session: Session, new: Sequence[model.NewMessage], now: int
) -> dict[TenantId, QuotaCounts]:
    counted: dict[TenantId, list[tuple[int, int, int]]] = {
        each.tenant: [] for each in new if each.limits is not None and each.limits.has_any
    }
    if counted:
        for tenant, *row in await session.fetch("accept_counts", tenants=list(counted)):
            counted[tenant].append((row[0], row[1], row[2]))
    return {tenant: QuotaCounts(now, rows) for tenant, rows in counted.items()}


async def lock(session: Session, names: Iterable[str]) -> None:
    """Lock these until the transaction ends; always in the same order, so that there is no deadlock."""
    await session.run("accept_lock", numbers=sorted(set(map(_number, names))))


def _number(name: str) -> int:
    digest = blake2b(name.encode(), digest_size=8, person=b"carteiro").digest()
    return int.from_bytes(digest, signed=True)


def limits_of(tenant: TenantId) -> str:
    """The lock for counting messages of a tenant."""
    return f"limits {tenant}"


def names_of(tenant: TenantId, told: NewRecipient) -> Iterator[str]:
    """The locks for adding a recipient."""
    if told.recipient_id is None:
        yield f"recipient {tenant} {told.external_id}"
        yield f"document {tenant} {told.cpf_cnpj_hash}"


async def firsts_under(
    session: Session, keys: Sequence[tuple[TenantId, str]], now: int
) -> dict[tuple[TenantId, str], First]:
    """The answers of keys, by tenant; keys without an answer, or with an expired one, are left out."""
    rows = await session.fetch("accept_keys", keys=keys, after=now - KEY_LIFE_MS)
    return {
        (tenant, key): First(digest, Replayed(identity, moment(at), recipient, request_id))
        for tenant, key, digest, identity, recipient, request_id, at in rows
    }


async def charge(
    session: Session, tenant: TenantId, refused: int, limits: ApiLimits, now: int
) -> Charged:
    """Count refused messages like accepted ones; only the counts are written."""
    await lock(session, [limits_of(tenant)])
    if not await session.fetch("accept_tenants", ids=[tenant]):
        return Charged(0)
    rows = await session.fetch("accept_counts", tenants=[tenant])
    tally = QuotaCounts(now, [(row[1], row[2], row[3]) for row in rows])
    charged = tally.charge(refused, limits)
    if charged.counted:
        counts = [(tenant, *row) for row in tally.rows()]
        await session.run("accept_save_counts", rows=counts)
    return charged


async def meet_each(session: Session, told: Sequence[Told], now: int) -> list[RecipientId]:
    """As `meet`, of many."""
    return [await meet(session, *each, now) for each in told]


async def meet(session: Session, tenant: TenantId, told: NewRecipient, now: int) -> RecipientId:
    """The id of the recipient: as given, else of a known recipient of the tenant, else of a new one.

    The caller holds the locks of `names_of`.
    """
    if told.recipient_id is not None:
        return told.recipient_id  # a given id is looked up by confirm, never created here
    fields: dict[str, object] = {
        "tenant": tenant,
        "email": told.email,
        "external_id": told.external_id,
        "cpf_cnpj_hash": told.cpf_cnpj_hash,
        "razao_social": told.razao_social,
        "nome": told.nome,
    }
    known = await session.value("recipient_known", **fields)
    identity = RecipientId(known or str(uuid7()))
    if known:
        await session.run("recipient_update", id=identity, **fields)
    else:
        await session.run("recipient_insert", id=identity, now=now, **fields)
    return identity
