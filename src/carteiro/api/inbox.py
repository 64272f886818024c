"""Endpoints of the sandbox's inbox: a tenant's own under ``/v1``, any tenant's under ``/admin/v1``."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.in_flight import SHARE
from carteiro.api.reading import PageQuestion, Time, read_query
from carteiro.api.refusal import bad_value, not_found, too_busy
from carteiro.api.whose import Whose
from carteiro.email.message import Attachment, Email, restore_email
from carteiro.errors import InvalidMessage
from carteiro.model import (
    MILLISECOND,
    InboxEntry,
    InboxFilter,
    InboxMail,
    MessageId,
    Page,
    TenantId,
)
from carteiro.ports import Inbox
from carteiro.runtime.inbox_watch import InboxWatch

LONGEST_WAIT_MS = 60_000
MOST_EMPTIED = 1000
MOST_DELIVERIES = 20  # of one message, that are counted


class MailSummary(Document):
    """A mail that the sandbox took: one for each delivery of a message."""

    outbox_id: str
    company_id: str
    to: str
    subject: str
    provider_id: str
    at: Moment


class MailPage(PageDocument):
    """Mails, newest first."""

    items: list[MailSummary]


class MailAttachment(Document):
    """A file of a mail; ``content`` in base64, ``size`` in bytes without it."""

    filename: str
    content_type: str
    content_id: str | None
    size: int
    content: str


class MailView(MailSummary):
    """A mail with its content: the newest of the ``deliveries`` of its message."""

    from_: str | None = Field(alias="from")
    cc: list[str]
    bcc: list[str]
    reply_to: str | None
    headers: dict[str, str]
    html: str | None
    text: str | None
    attachments: list[MailAttachment]
    deliveries: int


class Emptied(Document):
    """The number of deleted mails."""

    count: int
    has_more: bool


class MailQuestion(PageQuestion):
    """A selection of mails; a field that is not given does not restrict it."""

    to: str | None = Field(
        default=None, max_length=320, description="The whole address, in any case."
    )
    subject: str | None = Field(
        default=None, max_length=255, description="A part of the subject, in any case."
    )
    outbox_id: str | None = Field(default=None, max_length=255)
    since: Time | None = None
    wait_ms: int = Field(
        default=0,
        ge=0,
        le=LONGEST_WAIT_MS,
        description="Time to wait for a match, if there is none yet. Not together with cursor.",
    )


class InboxEndpoints(Endpoints):
    """Endpoints for the inbox of the tenant that ``whose`` finds."""

    def __init__(self, inbox: Inbox, watch: InboxWatch, whose: Whose) -> None:
        self._inbox = inbox
        self._watch = watch
        self._whose = whose
        self.prefix = whose.prefix

    @Endpoint(
        "GET", "/inbox", "List mails in the sandbox, or wait for one", MailPage, query=MailQuestion
    )
    async def list(self, request: Request) -> Response:
        """Matching mails that the sandbox took, newest first, without their contents.

        With ``waitMs`` the answer comes with the first match: after at most this time, then without items. At most
        20 requests may wait for the mails of a tenant in a process, and 100 for all; more are answered 429. A page
        looks at 1000 mails: with filters it may be short and still have a ``nextCursor``.
        """
        tenant = await self._whose.tenant_of(request)
        asked = read_query(request, MailQuestion)
        wanted = InboxFilter(
            tenant,
            message=None if asked.outbox_id is None else MessageId(asked.outbox_id),
            to=asked.to,
            subject=asked.subject,
            since=asked.since,
        )
        if asked.wait_ms:
            page = await self._waited(request, tenant, wanted, asked)
        else:
            page = await self._inbox.find(wanted, cursor=asked.after, limit=asked.limit)
        return MailPage.response(page, _summary)

    @Endpoint("GET", "/inbox/{id}", "Look at a mail in the sandbox", MailView)
    async def show(self, request: Request) -> Response:
        """The newest delivery of a message, by its ``outboxId``: all parts of the mail, attachments included."""
        tenant = await self._whose.tenant_of(request)
        identity = MessageId(request.path_params["id"])
        mails = await self._inbox.list(message=identity, tenant=tenant, limit=1)
        if not mails:
            raise not_found("mail")
        wanted = InboxFilter(tenant, message=identity)  # without their contents
        deliveries = await self._inbox.find(wanted, limit=MOST_DELIVERIES)
        try:
            email = restore_email(mails[0].content)
        except InvalidMessage:
            raise not_found("mail") from None
        return _view(mails[0], email, len(deliveries.rows)).as_response(nulls=True)

    @Endpoint("DELETE", "/inbox/{id}", "Delete a mail in the sandbox", status=204)
    async def delete(self, request: Request) -> Response:
        """Delete all deliveries of a message from the inbox; the message itself stays."""
        tenant = await self._whose.tenant_of(request)
        if not await self._inbox.delete(MessageId(request.path_params["id"]), tenant=tenant):
            raise not_found("mail")
        return Response(status_code=204)

    @Endpoint("DELETE", "/inbox", "Empty the inbox of the sandbox", Emptied)
    async def empty(self, request: Request) -> Response:
        """Delete all mails of the tenant, at most 1000 at once: repeat the request while ``hasMore`` is true."""
        tenant = await self._whose.tenant_of(request)
        count = await self._inbox.empty(tenant, limit=MOST_EMPTIED)
        return Emptied(count=count, has_more=count == MOST_EMPTIED).as_response()

    async def _waited(
        self, request: Request, tenant: TenantId, wanted: InboxFilter, asked: MailQuestion
    ) -> Page[InboxEntry]:
        if asked.cursor is not None:
            raise bad_value("waitMs", "cannot be combined with cursor: only the first page is new")
        if self._watch.is_full_for(tenant):
            raise too_busy("Too many requests wait for mails of the sandbox")
        request.scope[SHARE].end_turn()  # others of the tenant may read meanwhile
        return await self._watch.wait(
            wanted,
            limit=asked.limit,
            within=asked.wait_ms * MILLISECOND,
            is_gone=request.is_disconnected,
        )


def _summary(entry: InboxEntry) -> MailSummary:
    return MailSummary.of(entry, outbox_id=entry.message, company_id=entry.tenant)


def _view(mail: InboxMail, email: Email, deliveries: int) -> MailView:
    return MailView.model_validate(
        {
            **{name: getattr(mail, name) for name in ("to", "subject", "provider_id", "at")},
            **{name: getattr(email, name) for name in ("from_", "reply_to", "html", "text")},
            "outbox_id": mail.message,
            "company_id": mail.tenant,
            "cc": list(email.cc),
            "bcc": list(email.bcc),
            "headers": email.headers,
            "attachments": [_attachment(each) for each in email.attachments],
            "deliveries": deliveries,
        }
    )


def _attachment(file: Attachment) -> MailAttachment:
    size = len(file.content) * 3 // 4 - file.content[-2:].count("=")
    return MailAttachment.of(file, size=size)
