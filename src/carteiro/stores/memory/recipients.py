"""Who the tenants write to."""

from uuid_utils import uuid7

from carteiro.model import NewRecipient, Recipient, RecipientId, TenantId
from carteiro.stores.memory.tables import Tables, to_datetime


def meet(tables: Tables, tenant: TenantId, told: NewRecipient, now: int) -> RecipientId:
    """The id of the recipient that the tenant means: as given, else of one it knows, else of a new one."""
    if told.recipient_id is not None:
        return told.recipient_id
    known = _known(tables, tenant, told)
    recipient = _updated(known, told) if known else _made(tenant, told, now)
    tables.recipients[recipient.id] = recipient
    return recipient.id


def _known(tables: Tables, tenant: TenantId, told: NewRecipient) -> Recipient | None:
    """By external id where one is given, else by document."""
    mine = (each for each in tables.recipients.values() if each.tenant == tenant)
    for each in mine:
        if each.deleted_at is None and _is_same(each, told):
            return each
    return None


def _is_same(known: Recipient, told: NewRecipient) -> bool:
    if told.external_id is not None:
        return known.external_id == told.external_id
    return told.cpf_cnpj_hash is not None and known.cpf_cnpj_hash == told.cpf_cnpj_hash


def _made(tenant: TenantId, told: NewRecipient, now: int) -> Recipient:
    return Recipient(
        id=RecipientId(str(uuid7())),
        tenant=tenant,
        email=told.email,
        external_id=told.external_id,
        cpf_cnpj_hash=told.cpf_cnpj_hash,
        razao_social=told.razao_social,
        nome=told.nome,
        created_at=to_datetime(now),
        deleted_at=None,
    )


def _updated(known: Recipient, told: NewRecipient) -> Recipient:
    """What was told anew counts; what was not told stays."""
    return Recipient(
        id=known.id,
        tenant=known.tenant,
        email=told.email,
        external_id=_newest(told.external_id, known.external_id),
        cpf_cnpj_hash=_newest(told.cpf_cnpj_hash, known.cpf_cnpj_hash),
        razao_social=_newest(told.razao_social, known.razao_social),
        nome=_newest(told.nome, known.nome),
        created_at=known.created_at,
        deleted_at=known.deleted_at,
    )


def _newest(told: str | None, known: str | None) -> str | None:
    return known if told is None else told
