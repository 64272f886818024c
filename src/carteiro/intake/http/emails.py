"""The endpoints of e-mail: accept one, look at one."""

from datetime import timedelta
from typing import Protocol
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from carteiro.email import Email, EmailRecipient, read_email
from carteiro.intake.http.body import read_json
from carteiro.intake.http.documents import EmailAccepted, EmailView, EventView, RecipientView
from carteiro.intake.http.key_ring import KeyRing
from carteiro.intake.http.refusal import Refusal
from carteiro.model import (
    DEAD,
    EMAIL,
    Accepted,
    MessageId,
    RecipientId,
    Replayed,
    State,
    StoredMessage,
    TenantId,
    TimelineEvent,
)
from carteiro.ports import Reading

_MILLISECOND = timedelta(milliseconds=1)


class AcceptEmail(Protocol):
    """Commits one judged e-mail of a known tenant; a caller that goes away does not undo it."""

    async def __call__(
        self, email: Email, *, tenant: TenantId, request_id: str
    ) -> Accepted | Replayed:
        """Answer after the commit."""
        ...


class Emails:
    """What ``/v1`` offers for e-mail."""

    def __init__(self, accept: AcceptEmail, reading: Reading, keys: KeyRing) -> None:
        self._accept = accept
        self._reading = reading
        self._keys = keys

    async def send(self, request: Request) -> Response:
        """Answered only after the e-mail is durably committed."""
        tenant = await self._keys.tenant_of(request.headers)
        email = read_email(await read_json(request))
        request_id: str = request.state.request_id
        answer = await self._accept(email, tenant=tenant, request_id=request_id)
        return _accepted(answer, email, request_id).as_response(202)

    async def show(self, request: Request) -> Response:
        """Another tenant's e-mail is not found, as one that never was."""
        tenant = await self._keys.tenant_of(request.headers)
        identity = _message_id(request.path_params["id"])
        message = await self._reading.message(identity, tenant=tenant)
        if message is None or message.kind != EMAIL:
            raise _not_found()
        events = await self._reading.events(identity)
        return _view(message, events).as_response(nulls=True)


def _message_id(given: str) -> MessageId:
    try:
        return MessageId(str(UUID(given)))
    except ValueError:
        raise _not_found() from None


def _not_found() -> Refusal:
    return Refusal(404, "There is no such e-mail")


def _accepted(answer: Accepted | Replayed, email: Email, request_id: str) -> EmailAccepted:
    recipient = None
    if email.recipient is not None and answer.recipient_id is not None:
        recipient = _recipient(answer.recipient_id, email.recipient)
    return EmailAccepted(
        outbox_id=answer.id,
        job_id=answer.id,
        request_id=request_id,
        status=State.ENQUEUED,
        received_at=answer.received_at,
        recipient=recipient,
    )


def _recipient(known_as: RecipientId, given: EmailRecipient) -> RecipientView:
    return RecipientView(
        recipient_id=known_as,
        email=given.email,
        external_id=given.external_id,
        cpf_cnpj_hash=given.cpf_cnpj_hash,
        razao_social=given.razao_social,
        nome=given.nome,
    )


def _view(message: StoredMessage, events: list[TimelineEvent]) -> EmailView:
    failure, duration = message.failure, message.duration
    return EmailView(
        outbox_id=message.id,
        job_id=message.id,
        request_id=message.request_id,
        company_id=message.tenant,
        external_id=message.external_id,
        recipient_id=message.recipient_id,
        to=message.to,
        subject=message.subject,
        status=message.state,
        priority=message.priority,
        attempts=message.attempts,
        provider=message.provider,
        ses_message_id=message.provider_id,
        error_code=None if failure is None else failure.code,
        error_category=None if failure is None else failure.category,
        error_reason=None if failure is None else failure.reason,
        original_code=None if failure is None else failure.original_code,
        duration_ms=None if duration is None else duration // _MILLISECOND,
        created_at=message.created_at,
        due_at=message.due_at,
        expires_at=message.expires_at,
        cancel_requested_at=message.cancel_requested_at,
        sent_at=message.finished_at if message.state is State.SENT else None,
        failed_at=message.finished_at if message.state in DEAD else None,
        events=[
            EventView(type=each.type, metadata=dict(each.metadata), created_at=each.at)
            for each in events
        ],
    )
