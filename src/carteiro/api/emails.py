"""Endpoints of e-mail: accept, list, show, cancel."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro import model
from carteiro.api import email_documents as shown
from carteiro.api.body import read_json
from carteiro.api.cancelling import cancel
from carteiro.api.documents import JsonResponse
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.envelope import TRACE, request_id_of
from carteiro.api.idempotency import IDEMPOTENCY_KEY, REPLAYED, key_in
from carteiro.api.intake import Intake, refused
from carteiro.api.key_ring import KeyRing
from carteiro.api.reading import PageQuestion, Time, read_query
from carteiro.api.refusal import found, not_found
from carteiro.email.message import Email, read_email
from carteiro.email.plain import read_plain
from carteiro.email.submission import Submission
from carteiro.errors import InvalidMessage
from carteiro.policy.addresses import judge_address
from carteiro.ports import Reading, Store

_AS_ASKED = {
    *("external_id", "provider_id", "recipient_external_id", "tag", "code"),
    *("created_after", "created_before"),
}


class EmailQuestion(PageQuestion):
    """A selection of e-mails; a field that is not given does not restrict it."""

    status: model.State | None = None
    to: str | None = Field(default=None, max_length=320)
    external_id: str | None = Field(default=None, max_length=255)
    provider_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=998,
        description="Message id, set by the provider: the `sesMessageId` of an e-mail.",
    )
    recipient_external_id: str | None = Field(default=None, max_length=255)
    tag: str | None = Field(default=None, max_length=255)
    code: str | None = Field(
        default=None,
        max_length=255,
        description="Code of the last failure: `errorCode` or `originalCode`.",
    )
    created_after: Time | None = None
    created_before: Time | None = None

    def as_filter(
        self, *, tenant: model.TenantId | None, kind: model.KindName | None
    ) -> model.MessageFilter:
        """The same, for stores."""
        return model.MessageFilter(
            tenant=tenant,
            kind=kind,
            state=self.status,
            to=None if self.to is None else judge_address(self.to) or self.to,
            **self.model_dump(include=_AS_ASKED),
        )


class Emails(Endpoints):
    """Endpoints of ``/v1`` for e-mail."""

    def __init__(self, intake: Intake, store: Store, reading: Reading, keys: KeyRing) -> None:
        self._intake = intake
        self._store = store
        self._reading = reading
        self._keys = keys

    @Endpoint(
        "POST",
        "/v1/email/send",
        "Accept an e-mail",
        shown.EmailAccepted,
        status=202,
        reads=Email,
        headers=(IDEMPOTENCY_KEY,),
        refuses=(409,),
        is_traced=True,
    )
    async def send(self, request: Request) -> Response:
        """Accept an e-mail; the answer comes after it is durably committed.

        A repeated Idempotency-Key with the same e-mail within a day gets the first answer, with the header
        `Idempotent-Replayed: true`, and the e-mail is sent once; with another e-mail it is 409. Refused
        e-mails count against the limits, too.
        """
        tenant = await self._keys.tenant_of(request, accepts=True)
        key = key_in(request.headers)
        body = await read_json(request)
        request_id = request_id_of(request)
        span = request.scope.get(TRACE)
        trace = None if span is None else span.of(tenant.id)
        try:
            email = read_plain(body) or read_email(body, relay_headers=self._intake.relay_headers)
            limits = self._intake.limits_of(tenant)
            submission = Submission(email, tenant, request_id, key, limits, trace=trace)
            answer = await self._intake.accepting.one(submission)
        except InvalidMessage:
            await self._intake.charge_one(request, tenant)
            raise
        if not isinstance(answer, (model.Accepted, model.Replayed)):
            raise refused(answer)
        response = JsonResponse(shown.accepted(answer, email, request_id), 202)
        if isinstance(answer, model.Replayed):
            response.headers[REPLAYED] = "true"
        return response

    @Endpoint("GET", "/v1/emails", "List e-mails", shown.EmailPage, query=EmailQuestion)
    async def list(self, request: Request) -> Response:
        """Matching e-mails, newest first, without their contents; ``nextCursor`` leads to the next page."""
        tenant = await self._keys.tenant_of(request)
        asked = read_query(request, EmailQuestion)
        wanted = asked.as_filter(tenant=tenant.id, kind=model.EMAIL)
        page = await self._reading.messages(wanted, cursor=asked.after, limit=asked.limit)
        return shown.EmailPage.response(page, shown.summary)

    @Endpoint("GET", "/v1/emails/{id}", "Look at an e-mail and its events", shown.EmailView)
    async def show(self, request: Request) -> Response:
        """One e-mail; that of another tenant is not found."""
        message = await self._found(request)
        events = await self._reading.events(message.id)
        return shown.view(message, events).as_response(nulls=True)

    @Endpoint(
        "POST",
        "/v1/emails/{id}/cancel",
        "Cancel an e-mail",
        shown.Cancelled,
        also=202,
        refuses=(409,),
    )
    async def cancel(self, request: Request) -> Response:
        """Cancel a waiting e-mail (200), or prevent a second attempt of one in flight (202); else 409."""
        message = await self._found(request)
        return await cancel(self._store, message, "e-mail")

    async def _found(self, request: Request) -> model.StoredMessage:
        tenant = await self._keys.tenant_of(request)
        identity = message_id(request.path_params["id"], "e-mail")
        message = await self._reading.message(identity, tenant=tenant.id)
        if message is None or message.kind != model.EMAIL:
            raise not_found("e-mail")
        return message


def message_id(given: str, what: str) -> model.MessageId:
    """The id in an address; a `Refusal` if it is not an id."""
    return found(model.parse_message_id(given), what)
