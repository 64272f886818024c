"""Recipients of the tenants."""

from uuid_utils import uuid7

from carteiro.model import (
    NewRecipient,
    Recipient,
    RecipientId,
    TenantId,
)
from support.model.tables import Tables, to_datetime


def meet(tables: Tables, tenant: TenantId, told: NewRecipient, now: int) -> RecipientId:
    """The id of the recipient that the tenant means: as given, else of one it knows, else of a new one."""
    if told.recipient_id is not None:
        return told.recipient_id
    known = _known(tables, tenant, told)
    recipient = _updated(known, told) if known else _made(tenant, told, now)
    tables.recipients[recipient.id] = recipient
    return recipient.id


def _known(tables: Tables, tenant: TenantId, told: NewRecipient) -> Recipient | None:
    """By external id, else by document."""
    mine = [
        each
        for each in tables.recipients.values()
        if each.tenant == tenant and each.deleted_at is None
    ]
    by_external_id = (each for each in mine if _has_external_id(each, told))
    by_document = (each for each in mine if _has_document(each, told))
    return next(by_external_id, None) or next(by_document, None)


def _has_external_id(known: Recipient, told: NewRecipient) -> bool:
    return told.external_id is not None and known.external_id == told.external_id


def _has_document(known: Recipient, told: NewRecipient) -> bool:
    """Two external ids are two recipients, with any documents."""
    is_other = told.external_id is not None and known.external_id is not None
    same = told.cpf_cnpj_hash is not None and known.cpf_cnpj_hash == told.cpf_cnpj_hash
    return same and not is_other


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
    """New values count; missing ones stay."""
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
