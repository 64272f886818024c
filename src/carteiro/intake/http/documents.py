"""What the API answers, as JSON documents: camelCase, moments in ISO 8601 with milliseconds and Z."""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from carteiro.model import Category, EventType, State


def in_iso(moment: datetime) -> str:
    """The moment as it is written at every edge."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


Moment: TypeAlias = Annotated[
    datetime,
    PlainSerializer(in_iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Document(BaseModel):
    """A JSON document; what is None is left out unless the document says otherwise."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid"
    )

    def as_response(
        self, status: int = 200, *, headers: dict[str, str] | None = None, nulls: bool = False
    ) -> Response:
        """The response that carries it."""
        text = self.model_dump_json(by_alias=True, exclude_none=not nulls)
        return Response(text, status, headers, media_type="application/json")


class RecipientView(Document):
    """The recipient as given, under the id it is known by."""

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
    status: State
    received_at: Moment
    recipient: RecipientView | None = None


class EventView(Document):
    """One line of an e-mail's timeline."""

    type: EventType
    metadata: dict[str, Any]
    created_at: Moment


class EmailView(Document):
    """Where an e-mail stands, and how it got there; events oldest first."""

    outbox_id: str
    job_id: str
    request_id: str
    company_id: str
    external_id: str | None
    recipient_id: str | None
    to: str | None
    subject: str | None
    status: State
    priority: int
    attempts: int
    provider: str | None
    ses_message_id: str | None
    error_code: str | None
    error_category: Category | None
    error_reason: str | None
    original_code: str | None
    duration_ms: int | None
    created_at: Moment
    due_at: Moment
    expires_at: Moment
    cancel_requested_at: Moment | None
    sent_at: Moment | None
    failed_at: Moment | None
    events: list[EventView]


class FieldFault(Document):
    """One field that is wrong, and why."""

    field: str
    message: str


class ErrorBody(Document):
    """What went wrong; ``details`` name the fields, if it was about fields."""

    code: str
    message: str
    request_id: str
    timestamp: Moment
    details: list[FieldFault]


class ErrorDocument(Document):
    """The one shape of every error."""

    error: ErrorBody


class Health(Document):
    """How this process is; ``ledger`` says whether messages can be stored."""

    status: str
    ledger: str | None = None
