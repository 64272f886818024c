"""Endpoints of messages of any tenant and kind: list, show, explain, cancel."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.admin.dead_letter_documents import AwaitedRecoveryView
from carteiro.api.cancelling import cancel
from carteiro.api.documents import Document, Moment
from carteiro.api.email_documents import Cancelled, EmailPage, EmailView, summary, view
from carteiro.api.emails import EmailQuestion, message_id
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import within
from carteiro.api.reading import read_query
from carteiro.api.refusal import found
from carteiro.model import AutomaticPlan, KindName, State, StoredMessage
from carteiro.policy.waiting import Why
from carteiro.ports import Backend
from carteiro.runtime.messages import explain_message, note_cancel


class MessageQuestion(EmailQuestion):
    """A selection of messages; a field that is not given does not restrict it."""

    company_id: str | None = Field(default=None, max_length=255)
    kind: str | None = Field(default=None, max_length=255)


class EstimateView(Document):
    """An estimate of when a message is sent: between two moments, null: unknown. ``ahead`` is at most 10000."""

    text: str
    earliest: Moment | None
    latest: Moment | None
    ahead: int | None
    per_minute: float | None


class WaitingView(Document):
    """The reason why a message waits, as a code and a sentence; ``until`` null: unknown."""

    outbox_id: str
    status: State
    why: Why
    until: Moment | None
    text: str
    expires_at: Moment
    estimate: EstimateView | None
    automatic_redrive: AwaitedRecoveryView | None


class MessageEndpoints(Endpoints):
    """Endpoints of administrators for messages."""

    prefix = "/admin/v1/messages"

    def __init__(self, backend: Backend, plan: AutomaticPlan) -> None:
        self._backend = backend
        self._plan = plan
        self._reading = backend.reading

    @Endpoint("GET", "", "List messages", EmailPage, query=MessageQuestion)
    async def list(self, request: Request) -> Response:
        """Matching messages of all tenants or one, newest first, without their contents."""
        asked = read_query(request, MessageQuestion)
        wanted = asked.as_filter(
            tenant=within(request, asked.company_id),
            kind=None if asked.kind is None else KindName(asked.kind),
        )
        page = await self._reading.messages(wanted, cursor=asked.after, limit=asked.limit)
        return EmailPage.response(page, summary)

    @Endpoint("GET", "/{id}", "Look at a message and its events", EmailView)
    async def show(self, request: Request) -> Response:
        """One message of any tenant, its events oldest first, without its content."""
        message = await self._found(request)
        events = await self._reading.events(message.id)
        return view(message, events).as_response(nulls=True)

    @Endpoint("GET", "/{id}/explain", "Ask why a message waits", WaitingView)
    async def explain(self, request: Request) -> Response:
        """The first reason why it waits now, and until when; and an estimate of when it is sent.

        Of a dead letter, ``automaticRedrive`` says which provider it waits for, or why none redrives it automatically.
        """
        message = await self._found(request)
        told = await explain_message(self._backend, message, plan=self._plan)
        return WaitingView.of(
            told,
            outbox_id=message.id,
            status=message.state,
            expires_at=message.expires_at,
            estimate=told.estimate and EstimateView.of(told.estimate),
            automatic_redrive=told.automatic_redrive
            and AwaitedRecoveryView.of(told.automatic_redrive),
        ).as_response(nulls=True)

    @Endpoint("POST", "/{id}/cancel", "Cancel a message", Cancelled, also=202, refuses=(409,))
    async def cancel(self, request: Request) -> Response:
        """Cancel a waiting message (200), or prevent a second attempt of one in flight (202); else 409."""
        message = await self._found(request)
        await note_cancel(self._backend.audit, message)
        return await cancel(self._backend.store, message, "message")

    async def _found(self, request: Request) -> StoredMessage:
        identity = message_id(request.path_params["id"], "message")
        return found(await self._reading.message(identity, tenant=within(request)), "message")
