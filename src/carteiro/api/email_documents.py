"""E-mails as the API shows them."""

from typing import Any

from carteiro import model
from carteiro.api.documents import Document, ErrorBody, Moment, PageDocument
from carteiro.email.message import Email
from carteiro.email.plain import PlainEmail
from carteiro.policy.feedback import standing
from carteiro.views.moments import in_iso

# --- accepting ----------------------------------------------------------------------------------


class RecipientGiven(Document):
    """The recipient as given, with its id."""

    recipient_id: str
    email: str
    external_id: str | None = None
    cpf_cnpj_hash: str | None = None
    razao_social: str | None = None
    nome: str | None = None


class EmailAccepted(Document):
    """The e-mail is durably committed."""

    outbox_id: str
    job_id: str
    request_id: str
    status: model.State
    received_at: Moment
    recipient: RecipientGiven | None = None


class RateLimit(Document):
    """The limit that was reached; ``reset`` in seconds since 1970, as X-RateLimit-Reset."""

    limit: int
    remaining: int
    reset: int
    retry_after_ms: int


class BatchResult(Document):
    """The result of one e-mail of a batch: ``accepted`` if its status is 202, else ``error``."""

    status: int
    accepted: EmailAccepted | None = None
    error: ErrorBody | None = None
    rate_limit: RateLimit | None = None


class BatchResults(Document):
    """A result for each e-mail of a batch, in its order."""

    results: list[BatchResult]


def accepted(
    answer: model.Accepted | model.Replayed, email: Email | PlainEmail, request_id: str
) -> dict[str, Any]:
    """An `EmailAccepted`; a repeated request gets the first answer.

    As plain JSON: a model for each e-mail would cost more than the rest of the answer.
    """
    replayed = isinstance(answer, model.Replayed) and answer.request_id
    document: dict[str, Any] = {
        "outboxId": answer.id,
        "jobId": answer.id,
        "requestId": replayed or request_id,
        "status": "ENQUEUED",  # an enum would look it up each time
        "receivedAt": in_iso(answer.received_at),
    }
    if email.recipient is not None and answer.recipient_id is not None:
        given = email.recipient.model_dump(by_alias=True, exclude_none=True)
        document["recipient"] = given | {"recipientId": answer.recipient_id}
    return document


def rate_limit(answer: model.OverLimit) -> RateLimit:
    """A rate limit inside the result of a batch."""
    return RateLimit(
        limit=answer.limit,
        remaining=answer.remaining,
        reset=int(answer.resets_at.timestamp()),
        retry_after_ms=answer.retry_after // model.MILLISECOND,
    )


# --- reading ------------------------------------------------------------------------------------


class EventView(Document):
    """One line of an e-mail's timeline."""

    type: model.EventType
    metadata: dict[str, Any]
    created_at: Moment


class EmailSummary(Document):
    """The state of an e-mail.

    ``inDoubt``: number of attempts with unknown outcome since it was accepted or last redriven.
    """

    outbox_id: str
    job_id: str
    request_id: str
    company_id: str
    kind: model.KindName
    external_id: str | None
    recipient_id: str | None
    to: str | None
    subject: str | None
    tags: list[str]
    template_type: str | None
    status: model.State
    priority: int
    attempts: int
    in_doubt: int
    revision: int
    provider: str | None
    ses_message_id: str | None
    error_code: str | None
    error_category: model.Category | None
    error_reason: str | None
    original_code: str | None
    duration_ms: int | None
    created_at: Moment
    due_at: Moment
    expires_at: Moment
    cancel_requested_at: Moment | None
    sent_at: Moment | None
    failed_at: Moment | None


class EmailView(EmailSummary):
    """The state of an e-mail and its events, oldest first.

    ``deliveryStatus`` is the last feedback of its provider about the delivery, null without any.
    """

    delivery_status: model.EventType | None
    events: list[EventView]


class EmailPage(PageDocument):
    """Matching e-mails, newest first."""

    items: list[EmailSummary]


class Cancelled(Document):
    """The e-mail will not be sent; if an attempt is in flight, not again."""

    outbox_id: str
    status: model.State
    cancel_requested: bool


def summary(message: model.StoredMessage) -> EmailSummary:
    """One line of a list."""
    return EmailSummary.of(message, **_renamed(message))


def view(message: model.StoredMessage, events: list[model.TimelineEvent]) -> EmailView:
    """One message with its events."""
    shown = [EventView.of(each, created_at=each.at) for each in events]
    return EmailView.of(
        message, **_renamed(message), delivery_status=standing(events), events=shown
    )


def _renamed(message: model.StoredMessage) -> dict[str, Any]:
    """The fields that a stored message does not have, or has under another name."""
    failure, duration = message.failure, message.duration
    return {
        "outbox_id": message.id,
        "job_id": message.id,
        "company_id": message.tenant,
        "status": message.state,
        "ses_message_id": message.provider_id,
        "error_code": failure and failure.code,
        "error_category": failure and failure.category,
        "error_reason": failure and failure.reason,
        "original_code": failure and failure.original_code,
        "duration_ms": None if duration is None else duration // model.MILLISECOND,
        "sent_at": message.finished_at if message.state is model.State.SENT else None,
        "failed_at": message.finished_at if message.state in model.DEAD else None,
    }
