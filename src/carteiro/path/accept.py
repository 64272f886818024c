"""Accept an e-mail: make of it the message that a store commits.

In: an e-mail that was judged, its tenant and the id of the request. Out: a `NewMessage` with its
own id and its first event. Until the store has answered, nothing exists: a crash before the commit
leaves nothing behind, and the caller was promised nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TypeAlias

from uuid_utils import uuid7

from carteiro.email import Email, EmailRecipient, stored_content
from carteiro.errors import NotAccepted
from carteiro.model import (
    EMAIL,
    Event,
    EventType,
    MessageId,
    NewMessage,
    NewRecipient,
    RecipientId,
    StoreAnswer,
    TenantId,
)

Commit: TypeAlias = Callable[[Sequence[NewMessage]], Awaitable[list[StoreAnswer]]]

DEFAULT_TTL = timedelta(hours=24)


def email_message(
    email: Email, *, tenant: TenantId, request_id: str, default_ttl: timedelta = DEFAULT_TTL
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
        recipient=None if email.recipient is None else _new_recipient(email.recipient),
        events=(Event(EventType.ENQUEUED, {"requestId": request_id}),),
    )


def _new_recipient(recipient: EmailRecipient) -> NewRecipient:
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
    made: Sequence[NewMessage | NotAccepted], commit: Commit
) -> list[StoreAnswer | NotAccepted]:
    """Commit what is well-formed in one go; an answer for each item, in its place."""
    stored = iter(await commit([each for each in made if isinstance(each, NewMessage)]))
    return [each if isinstance(each, NotAccepted) else next(stored) for each in made]
