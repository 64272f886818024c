"""Endpoints of the table queue, at the addresses of Supabase."""

import binascii
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro import model
from carteiro.api.documents import JSON, Document, Moment
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.envelope import TRACE, request_id_of
from carteiro.api.intake import Intake, refused
from carteiro.api.key_ring import KeyRing, key_in
from carteiro.api.reading import read_question
from carteiro.api.refusal import Refusal, too_busy
from carteiro.email.message import Email, make_email
from carteiro.email.submission import Submission
from carteiro.errors import FieldError, InvalidMessage
from carteiro.ports import Reading
from carteiro.runtime.polling import polls

MOST_IN_A_RUN = 10
_MOST_WAITING_CALLS = 5  # of a tenant: each polls the ledger while it waits
_WAITING = (model.State.ENQUEUED, model.State.RETRY_SCHEDULED)
_STATUS = {model.State.SENT: "sent", model.State.CANCELLED: "cancelled"} | dict.fromkeys(
    (model.State.FAILED, model.State.EXPIRED), "failed"
)
_PUBLISHABLE = "sb_publishable_"
_COLUMNS = {  # of the fields of an e-mail
    "to": "recipient_email",
    "template.type": "template_type",
    "template.variables": "payload",
}


class SendQuestion(BaseModel):
    """A row of ``email_queue``, by its columns."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    template_type: str = Field(description="The name of a template.")
    recipient_email: str = Field(description="An address alone, without a display name.")
    user_id: UUID | None = Field(default=None, description="Id of the user, set by the tenant.")
    payload: dict[str, object] | None = Field(
        default=None, description="The variables of the template, by name."
    )


class EnqueueQuestion(SendQuestion):
    """The arguments of ``enqueue_email``, by their names in SQL."""

    model_config = ConfigDict(alias_generator=lambda column: f"p_{column}")


class QueueRun(Document):
    """Results of the e-mails that were due; ``pending`` ones were not tried yet."""

    processed: int
    sent: int
    retried: int
    failed: int
    cancelled: int
    pending: int


class SendResult(Document):
    """A row of ``email_queue`` after its first attempt, by its columns."""

    model_config = ConfigDict(alias_generator=None)

    id: str
    status: str = Field(description="sent, pending, failed or cancelled.")
    error_message: str | None = Field(default=None, description="Reason of the last failure.")
    next_retry_at: Moment | None = Field(default=None, description="Of a pending one.")
    resend_id: str | None = Field(default=None, description="The provider's id of a sent one.")


class TableQueueEndpoints(Endpoints):
    """Accepts e-mails by a template, and reports the results of their attempts; sending is the workers' part."""

    def __init__(
        self, intake: Intake, reading: Reading, keys: KeyRing, *, longest_wait: timedelta
    ) -> None:
        self._intake = intake
        self._reading = reading
        self._keys = keys
        self._longest_wait = longest_wait
        self._calls: Counter[model.TenantId] = Counter()

    @Endpoint(
        "POST",
        "/rest/v1/rpc/enqueue_email",
        "Put an e-mail into the table queue",
        reads=EnqueueQuestion,
        is_traced=True,
    )
    async def enqueue(self, request: Request) -> Response:
        """Accept an e-mail; the answer, its id as a JSON string, comes after it is durably committed.

        It is rendered here, tried at once and, as the preset ``transactional`` has it, again after 1, 5
        and 15 minutes: the fourth failure is final. On Postgres it is a row of ``email_queue``.
        """
        tenant = await self._tenant_of(request)
        asked = await read_question(request, EnqueueQuestion)
        identity = await self._accepted(request, tenant, asked)
        return Response(orjson.dumps(identity), media_type=JSON)

    @Endpoint(
        "POST",
        "/functions/v1/send-custom-emails",
        "Put an e-mail into the table queue and wait for its first attempt",
        SendResult,
        also=202,
        reads=SendQuestion,
        is_traced=True,
    )
    async def send(self, request: Request) -> Response:
        """Accept an e-mail and wait for its first attempt: 200 with its result, 202 if there was none in time.

        The e-mail is committed first, as by ``enqueue_email``: a pending one is tried later.
        """
        tenant = await self._tenant_of(request)
        asked = await read_question(request, SendQuestion)
        with self._waiting_call(tenant):  # a refused call leaves nothing behind
            identity = await self._accepted(request, tenant, asked)
            [tried], _ = await self._tried({identity: 0})
        if tried is None:
            return SendResult(id=identity, status="pending").as_response(202)
        status = _STATUS.get(tried.state, "pending")
        return SendResult(
            id=identity,
            status=status,
            error_message=None if tried.failure is None else tried.failure.reason,
            next_retry_at=tried.due_at if status == "pending" else None,
            resend_id=tried.provider_id,
        ).as_response()

    @Endpoint(
        "POST",
        "/functions/v1/process-email-queue",
        "Wait for the e-mails that are due",
        QueueRun,
        also=202,
    )
    async def process(self, request: Request) -> Response:
        """Wait for workers to try the tenant's e-mails that are due, ten at most; answered with counts.

        202 if some are still pending: they are tried as soon as a worker runs. Nothing is sent by this process.
        """
        tenant = await self._tenant_of(request)
        with self._waiting_call(tenant):
            rows, pending = await self._tried(await self._due(tenant))
        states = [row.state for row in rows if row is not None]
        return QueueRun(
            processed=len(states),
            sent=states.count(model.State.SENT),
            retried=states.count(model.State.RETRY_SCHEDULED),
            failed=states.count(model.State.FAILED) + states.count(model.State.EXPIRED),
            cancelled=states.count(model.State.CANCELLED),
            pending=pending,
        ).as_response(202 if pending else 200)

    async def _accepted(
        self, request: Request, tenant: model.Tenant, asked: SendQuestion
    ) -> model.MessageId:
        row = model.QueueRow(None if asked.user_id is None else str(asked.user_id))
        limits = self._intake.limits_of(tenant)
        span = request.scope.get(TRACE)
        trace = None if span is None else span.of(tenant.id)
        try:
            submission = Submission(
                *(_email(asked, row), tenant, request_id_of(request)),
                limits=limits,
                row=row,
                trace=trace,
            )
            answer = await self._intake.accepting.one(submission)
        except InvalidMessage as error:
            await self._intake.charge_one(request, tenant)
            raise InvalidMessage([_renamed(each, asked) for each in error.fields]) from None
        if not isinstance(answer, model.Accepted | model.Replayed):
            raise refused(answer)
        return answer.id

    @contextmanager
    def _waiting_call(self, tenant: model.Tenant) -> Iterator[None]:
        if self._calls[tenant.id] >= _MOST_WAITING_CALLS:
            raise too_busy(f"At most {_MOST_WAITING_CALLS} calls may wait for a worker at once")
        self._calls[tenant.id] += 1
        try:
            yield
        finally:
            self._calls[tenant.id] -= 1
            if not self._calls[tenant.id]:
                del self._calls[tenant.id]

    async def _due(self, tenant: model.Tenant) -> dict[model.MessageId, int]:
        """E-mails of the tenant that are due, and how often each was tried; not those that are being sent."""
        due: dict[model.MessageId, int] = {}
        for identity in await self._reading.due(tenant.id, model.EMAIL, limit=MOST_IN_A_RUN):
            row = await self._reading.message(identity)
            if row is not None and row.state in _WAITING and len(due) < MOST_IN_A_RUN:
                due[identity] = row.attempts
        return due

    async def _tried(
        self, attempts: Mapping[model.MessageId, int]
    ) -> tuple[list[model.StoredMessage | None], int]:
        """Wait for one more attempt of each message: the row after it, None without one; and how many are pending."""
        rows: dict[model.MessageId, model.StoredMessage | None] = dict.fromkeys(attempts)
        pending = set(attempts)
        async for _ in polls(within=self._longest_wait):
            for identity in list(pending):
                row = await self._reading.message(identity)
                if row is None or _is_tried(row, attempts[identity]):
                    rows[identity] = row
                    pending.discard(identity)
            if not pending:
                break
        return list(rows.values()), len(pending)

    async def _tenant_of(self, request: Request) -> model.Tenant:
        if _is_anonymous(key_in(request.headers)):
            raise Refusal(403, "An anon key may not do this: a service key is needed")
        return await self._keys.tenant_of(request, accepts=True)


def _is_tried(row: model.StoredMessage, attempts_before: int) -> bool:
    """True if an attempt has ended since, or none will be made."""
    if row.state in model.FINISHED:
        return True
    return row.state is model.State.RETRY_SCHEDULED and row.attempts > attempts_before


def _email(asked: SendQuestion, row: model.QueueRow) -> Email:
    fields: dict[str, object] = {
        "to": asked.recipient_email,
        "template": {"type": asked.template_type, "variables": asked.payload or {}},
    }
    if row.user_id is not None:
        fields["recipient"] = {"email": asked.recipient_email, "externalId": row.user_id}
    return make_email(fields).model_copy(update={"max_retries": row.max_retries})


def _renamed(fault: FieldError, asked: SendQuestion) -> FieldError:
    """The fault, with the field name of the caller."""
    for path, column in _COLUMNS.items():
        if fault.field == path or fault.field.startswith(f"{path}."):
            name = type(asked).model_fields[column].alias or column
            return FieldError(name + fault.field.removeprefix(path), fault.message)
    return FieldError(fault.field, fault.message)


def _is_anonymous(key: str) -> bool:
    """True for a public key of Supabase; a refusal needs no check of its signature."""
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
