"""A submission of an e-mail, and the message that a store commits for it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import TypeAlias

from uuid_utils import uuid7

from carteiro.email.message import Email, EmailRecipient, stored_content
from carteiro.errors import FieldError, InvalidMessage, NotAccepted
from carteiro.model import (
    EMAIL,
    ApiLimits,
    Event,
    EventType,
    IdempotencyKey,
    MessageId,
    NewMessage,
    NewRecipient,
    QueueRow,
    RecipientId,
    Replayed,
    StoreAnswer,
    Tenant,
    TenantId,
    value,
)
from carteiro.policy.tenancy import sender_fault

Commit: TypeAlias = Callable[[Sequence[NewMessage]], Awaitable[list[StoreAnswer | NotAccepted]]]

DEFAULT_TTL = timedelta(hours=24)


@value
class Posting:
    """One judged e-mail of a tenant, as it is handed in: the words of its template are still to come.

    ``key`` set: it is accepted once under it. ``limits`` set: it is counted against them. ``row`` set: it
    is one of the table queue.
    """

    email: Email
    tenant: Tenant
    request_id: str
    key: IdempotencyKey | None = None
    limits: ApiLimits | None = None
    row: QueueRow | None = None


@value
class Senders:
    """Whom an e-mail may be from: who has claimed the domain of its From, and whether only a default From will do.

    ``default_only`` is for tenants that have claimed no domain.
    """

    owner: TenantId | None = None
    default_only: bool = False


ANY_SENDER = Senders()


def posted(
    posting: Posting,
    *,
    rendered: Email | None = None,
    default_ttl: timedelta = DEFAULT_TTL,
    senders: Senders = ANY_SENDER,
) -> NewMessage:
    """The message that a posting becomes, as its tenant's settings have it; may raise `InvalidMessage`.

    ``rendered`` is its e-mail with the words of its template.
    """
    tenant, template = posting.tenant, posting.email.template
    return email_message(
        from_tenant(rendered or posting.email, tenant, senders),
        tenant=tenant.id,
        request_id=posting.request_id,
        default_ttl=default_ttl,
        template_type=None if template is None else template.type,
        key=key_of(posting),
        limits=posting.limits,
        row=posting.row,
    )


def key_of(posting: Posting) -> IdempotencyKey | None:
    """The key that a posting is accepted once under: the one that was given, else its external id's.

    It is of what was asked, not of what a template made of it: that may change meanwhile.
    """
    return posting.key or _external_key(posting.email, posting.tenant)


def email_message(  # noqa: PLR0913 - what a message is made of, each by its name
    email: Email,
    *,
    tenant: TenantId,
    request_id: str,
    default_ttl: timedelta = DEFAULT_TTL,
    template_type: str | None = None,
    key: IdempotencyKey | None = None,
    limits: ApiLimits | None = None,
    row: QueueRow | None = None,
) -> NewMessage:
    """The message that carries this e-mail, under a new id."""
    return NewMessage(
        id=MessageId(str(uuid7())),
        tenant=tenant,
        kind=EMAIL,
        content=stored_content(email),
        request_id=request_id,
        ttl=default_ttl if email.ttl is None else timedelta(milliseconds=email.ttl),
        priority=email.priority,
        due=email.scheduled_at,
        delivery=email.delivery,
        to=email.to,
        subject=email.subject,
        external_id=email.external_id,
        recipient=None if email.recipient is None or row else new_recipient(email.recipient),
        events=(Event(EventType.ENQUEUED, {"requestId": request_id}),),
        tags=email.tags,
        template_type=template_type,
        key=key,
        limits=limits,
        row=row,
    )


def from_tenant(email: Email, tenant: Tenant, senders: Senders = ANY_SENDER) -> Email:
    """The e-mail with the tenant's own From if it names none; `InvalidMessage` if it is another's."""
    sender = email.from_ or tenant.default_from
    if sender is None:
        return email
    fault = sender_fault(
        tenant,
        sender,
        owner=senders.owner,
        default_only=senders.default_only and email.from_ is not None,
    )
    if fault is not None:
        raise InvalidMessage([FieldError("from", fault)])
    return email if email.from_ is not None else email.model_copy(update={"from_": sender})


def key_for(name: str, email: Email) -> IdempotencyKey:
    """The key that stands for just this e-mail, whatever its tenant's settings add to it."""
    return IdempotencyKey(name, sha256(stored_content(email).encode()).hexdigest())


def _external_key(email: Email, tenant: Tenant) -> IdempotencyKey | None:
    if not tenant.external_id_is_key or email.external_id is None:
        return None
    return key_for(f"\x1f{email.external_id}", email)  # no key that is given can begin so


def new_recipient(recipient: EmailRecipient) -> NewRecipient:
    """Who an e-mail is for, as stores meet them."""
    given = recipient.recipient_id
    return NewRecipient(
        email=recipient.email,
        recipient_id=None if given is None else RecipientId(given),
        external_id=recipient.external_id,
        cpf_cnpj_hash=recipient.cpf_cnpj_hash,
        razao_social=recipient.razao_social,
        nome=recipient.nome,
    )


async def accept_each(
    made: Sequence[NewMessage | Replayed | NotAccepted], commit: Commit
) -> list[StoreAnswer | NotAccepted]:
    """Commit what is well-formed in one go; an answer for each item, in its place."""
    stored = iter(await commit([each for each in made if isinstance(each, NewMessage)]))
    return [next(stored) if isinstance(each, NewMessage) else each for each in made]
