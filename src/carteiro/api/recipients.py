"""Endpoints of recipients: a tenant's own under ``/v1``, any tenant's under ``/admin/v1``."""

from uuid import UUID

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.erasing import ErasedDocument, erased_in_pages
from carteiro.api.reading import PageQuestion, read_query
from carteiro.api.refusal import found, not_found
from carteiro.api.whose import Whose
from carteiro.model import Recipient, RecipientId
from carteiro.policy.addresses import judge_address
from carteiro.ports import Recipients


class RecipientView(Document):
    """A recipient as stored."""

    recipient_id: str
    company_id: str
    email: str
    external_id: str | None
    cpf_cnpj_hash: str | None
    razao_social: str | None
    nome: str | None
    created_at: Moment
    deleted_at: Moment | None


class RecipientPage(PageDocument):
    """Matching recipients, newest first."""

    items: list[RecipientView]


class RecipientQuestion(PageQuestion):
    """A selection of recipients; a field that is not given does not restrict it."""

    external_id: str | None = Field(default=None, max_length=255)
    email: str | None = Field(default=None, max_length=320)


class RecipientEndpoints(Endpoints):
    """Endpoints for the recipients of the tenant that ``whose`` finds."""

    def __init__(self, recipients: Recipients, whose: Whose) -> None:
        self._recipients = recipients
        self._whose = whose
        self.prefix = whose.prefix

    @Endpoint("GET", "/recipients", "List recipients", RecipientPage, query=RecipientQuestion)
    async def list(self, request: Request) -> Response:
        """Matching recipients, newest first, deleted ones included."""
        tenant = await self._whose.tenant_of(request)
        asked = read_query(request, RecipientQuestion)
        email = None if asked.email is None else judge_address(asked.email) or asked.email
        page = await self._recipients.list(
            tenant,
            external_id=asked.external_id,
            email=email,
            cursor=asked.after,
            limit=asked.limit,
        )
        return RecipientPage.response(page, _view)

    @Endpoint("GET", "/recipients/{id}", "Look at a recipient", RecipientView)
    async def show(self, request: Request) -> Response:
        """One recipient, deleted or not."""
        return _view(await self._found(request)).as_response(nulls=True)

    @Endpoint("DELETE", "/recipients/{id}", "Delete a recipient", status=204)
    async def delete(self, request: Request) -> Response:
        """Delete a recipient: new e-mails to it fail; its row stays."""
        recipient = await self._found(request)
        await self._recipients.delete(recipient.id, tenant=recipient.tenant)
        return Response(status_code=204)

    @Endpoint("POST", "/recipients/{id}/erase", "Erase a recipient", ErasedDocument, also=202)
    async def erase(self, request: Request) -> Response:
        """Erase its personal data, also from its messages; waiting messages are cancelled.

        202 with ``hasMore`` if more is left, or a message is in flight: repeat the request.
        """
        recipient = await self._found(request)
        erased = await erased_in_pages(
            lambda: self._recipients.erase(recipient.id, tenant=recipient.tenant)
        )
        return found(erased, "recipient")

    async def _found(self, request: Request) -> Recipient:
        tenant = await self._whose.tenant_of(request)
        identity = _recipient_id(request.path_params["id"])
        return found(await self._recipients.show(identity, tenant=tenant), "recipient")


def _recipient_id(given: str) -> RecipientId:
    try:
        return RecipientId(str(UUID(given)))
    except ValueError:
        raise not_found("recipient") from None


def _view(recipient: Recipient) -> RecipientView:
    return RecipientView.of(recipient, recipient_id=recipient.id, company_id=recipient.tenant)
