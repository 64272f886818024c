"""Who the tenants write to."""

from dataclasses import replace

from uuid_utils import uuid7

from carteiro.model import (
    Cursor,
    Erased,
    NewRecipient,
    Page,
    Recipient,
    RecipientId,
    TenantId,
)
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.memory.erasing import erase_recipient
from carteiro.stores.memory.tables import Tables, to_datetime, to_ms


class MemoryRecipients:
    """The `Recipients` port on a plain dict."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def show(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        found = self._tables.recipients.get(recipient)
        return found if found is not None and found.tenant == tenant else None

    async def list(
        self,
        tenant: TenantId,
        *,
        external_id: str | None = None,
        email: str | None = None,
        cursor: Cursor | None = None,
        limit: int = 100,
    ) -> Page[Recipient]:
        """Recipients that match, newest first; deleted ones included."""
        after = key_of(cursor, (FAR, ""))
        own = (each for each in self._tables.recipients.values() if each.tenant == tenant)
        found = [
            each
            for each in sorted(own, key=_age, reverse=True)
            if _age(each) < after
            and external_id in {None, each.external_id}
            and email in {None, each.email}
        ]
        more = cursor_at(*_age(found[limit - 1])) if len(found) > limit else None
        return Page(found[:limit], more)

    async def delete(self, recipient: RecipientId, *, tenant: TenantId) -> bool:
        """Mark as deleted; False if there is none, or it is deleted already."""
        found = await self.show(recipient, tenant=tenant)
        if found is None or found.deleted_at is not None:
            return False
        now = to_datetime(self._tables.now())
        self._tables.recipients[recipient] = replace(found, deleted_at=now)
        return True

    async def erase(
        self, recipient: RecipientId, *, tenant: TenantId, limit: int = 1000
    ) -> Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient."""
        found = await self.show(recipient, tenant=tenant)
        return None if found is None else erase_recipient(self._tables, found, limit)


def _age(recipient: Recipient) -> tuple[int, str]:
    """The order of every list of recipients."""
    return to_ms(recipient.created_at), recipient.id


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
    """Two external ids are two recipients, whatever their documents say."""
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
