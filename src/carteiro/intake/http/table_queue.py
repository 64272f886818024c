"""The two addresses of the table queue, as those who come from Supabase know them."""

import asyncio
import binascii
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.email import Email, make_email
from carteiro.errors import FieldError, InvalidMessage, NotAccepted
from carteiro.intake.http.documents import JSON, Document
from carteiro.intake.http.endpoint import Endpoint
from carteiro.intake.http.intake import Intake, Item, Office, refused
from carteiro.intake.http.key_ring import KeyRing, key_in
from carteiro.intake.http.reading import read_question
from carteiro.intake.http.refusal import Refusal
from carteiro.model import Accepted, QueueRow, Replayed, State, Tenant

MOST_IN_A_RUN = 10
_PUBLISHABLE = "sb_publishable_"
_ARGUMENTS = {
    "to": "p_recipient_email",
    "template.type": "p_template_type",
    "template.variables": "p_payload",
}


class EnqueueQuestion(BaseModel):
    """The arguments of ``enqueue_email``, by their names in SQL."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    p_template_type: str = Field(description="The name of a template.")
    p_recipient_email: str = Field(description="An address alone, without a display name.")
    p_user_id: UUID | None = Field(default=None, description="Whom the tenant knows by it.")
    p_payload: dict[str, object] | None = Field(
        default=None, description="The words of the template, by name."
    )


class QueueRun(Document):
    """What became of the e-mails that were due."""

    processed: int
    sent: int
    retried: int
    failed: int
    cancelled: int


class TableQueue:
    """Puts e-mails in by a template, and works off what is due, for whoever has a tenant's key."""

    def __init__(self, office: Office, intake: Intake, keys: KeyRing) -> None:
        self._office = office
        self._intake = intake
        self._keys = keys
        self._running = asyncio.Lock()

    def endpoints(self) -> Iterable[Endpoint]:
        """Both of them."""
        yield Endpoint(
            "POST",
            "/rest/v1/rpc/enqueue_email",
            self.enqueue,
            "Put an e-mail into the table queue",
            None,
            reads=EnqueueQuestion,
            refuses=(429,),
        )
        yield Endpoint(
            "POST",
            "/functions/v1/process-email-queue",
            self.process,
            "Work off what is due",
            QueueRun,
        )

    async def enqueue(self, request: Request) -> Response:
        """Answered with the id, a JSON string, after the e-mail is durably committed.

        It is rendered here, tried at once and, as the preset ``transactional`` has it, again after 1, 5
        and 15 minutes: the fourth failure is final. On Postgres it is a row of ``email_queue``.
        """
        tenant = await self._tenant_of(request)
        asked = await read_question(request, EnqueueQuestion)
        user_id = None if asked.p_user_id is None else str(asked.p_user_id)
        row = QueueRow(user_id)
        item = Item(_email(asked, row), None, row)
        request_id: str = request.state.request_id
        [answer] = await self._intake.many([item], tenant=tenant, request_id=request_id)
        if isinstance(answer, NotAccepted):
            answer = NotAccepted(_by_argument(answer.fields))
        if not isinstance(answer, Accepted | Replayed):
            raise refused(answer)
        return Response(orjson.dumps(answer.id), media_type=JSON)

    async def process(self, request: Request) -> Response:
        """Send at most ten that are due, of whichever tenants, beside any worker; one run at a time."""
        await self._tenant_of(request)
        async with self._running:
            states = await self._office.work_off(limit=MOST_IN_A_RUN)
        return QueueRun(
            processed=sum(states.values()),
            sent=states.get(State.SENT, 0),
            retried=states.get(State.RETRY_SCHEDULED, 0),
            failed=states.get(State.FAILED, 0) + states.get(State.EXPIRED, 0),
            cancelled=states.get(State.CANCELLED, 0),
        ).as_response()

    async def _tenant_of(self, request: Request) -> Tenant:
        if _is_anonymous(key_in(request.headers)):
            raise Refusal(403, "An anon key may not do this: a service key is needed")
        return await self._keys.tenant_of(request)


def _email(asked: EnqueueQuestion, row: QueueRow) -> Email:
    fields: dict[str, object] = {
        "to": asked.p_recipient_email,
        "template": {"type": asked.p_template_type, "variables": asked.p_payload or {}},
    }
    if row.user_id is not None:
        fields["recipient"] = {"email": asked.p_recipient_email, "externalId": row.user_id}
    try:
        email = make_email(fields)
    except InvalidMessage as error:
        raise InvalidMessage(_by_argument(error.fields)) from None
    return email.model_copy(update={"max_retries": row.max_retries})


def _by_argument(faults: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """What is wrong, by the names of the arguments."""
    return tuple(FieldError(_argument(each.field), each.message) for each in faults)


def _argument(field: str) -> str:
    for path, argument in _ARGUMENTS.items():
        if field == path or field.startswith(f"{path}."):
            return argument + field.removeprefix(path)
    return field


def _is_anonymous(key: str) -> bool:
    """Whether it is a key that Supabase gives to everybody; its signature does not matter for a no."""
    if key.startswith(_PUBLISHABLE):
        return True
    parts = key.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - a JSON Web Token
        return False
    try:
        claims = orjson.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(claims, dict) and claims.get("role") == "anon"
