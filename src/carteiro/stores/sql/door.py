"""What is asked and kept of whoever hands messages in: idempotency keys, counts, recipients."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from uuid_utils import uuid7

from carteiro.model import ApiLimits, Charged, NewRecipient, RecipientId, Replayed, TenantId
from carteiro.policy.quota import KEY_LIFE_MS, QuotaCounts
from carteiro.stores.columns import moment
from carteiro.stores.door import First
from carteiro.stores.sql.session import Session


async def lock(session: Session, names: Iterable[str]) -> None:
    """Keep others away until the transaction ends; in one order, so that nobody waits in a circle."""
    await session.run("accept_lock", numbers=sorted(set(map(_number, names))))


def _number(name: str) -> int:
    digest = blake2b(name.encode(), digest_size=8, person=b"carteiro").digest()
    return int.from_bytes(digest, signed=True)


def limits_of(tenant: TenantId) -> str:
    """What whoever counts messages of a tenant must be alone with."""
    return f"limits {tenant}"


def names_of(tenant: TenantId, told: NewRecipient) -> Iterator[str]:
    """What whoever adds a recipient must be alone with."""
    if told.recipient_id is None:
        yield f"recipient {tenant} {told.external_id}"
        yield f"document {tenant} {told.cpf_cnpj_hash}"


async def firsts_under(
    session: Session, keys: Sequence[tuple[TenantId, str]], now: int
) -> dict[tuple[TenantId, str], First]:
    """What keys stand for, each of its tenant; those that stand for nothing, or no longer, are left out."""
    rows = await session.fetch("accept_keys", keys=keys, after=now - KEY_LIFE_MS)
    return {
        (tenant, key): First(digest, Replayed(identity, moment(at), recipient, request_id))
        for tenant, key, digest, identity, recipient, request_id, at in rows
    }


async def charge(
    session: Session, tenant: TenantId, refused: int, limits: ApiLimits, now: int
) -> Charged:
    """Count messages that were refused as those that are accepted; the counts alone are written."""
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


async def meet(session: Session, tenant: TenantId, told: NewRecipient, now: int) -> RecipientId:
    """The id of the recipient that the tenant means: as given, else of one it knows, else of a new one.

    The caller holds the locks of `names_of`.
    """
    if told.recipient_id is not None:
        return told.recipient_id  # a given id is looked up by confirm, never made up here
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
