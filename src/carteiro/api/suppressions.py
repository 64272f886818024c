"""Endpoints of suppressions: a tenant's own under ``/v1``, any tenant's under ``/admin/v1``."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import FailFast, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.in_flight import PerMinute
from carteiro.api.reading import PageQuestion, Question, Time, read_query, read_question
from carteiro.api.refusal import bad_value, not_found, stored
from carteiro.api.whose import Whose
from carteiro.email.message import MOST_FAULTS
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import LATEST, NewSuppression, Suppression, SuppressionReason, TenantId
from carteiro.policy.addresses import judge_address
from carteiro.ports import Suppressions
from carteiro.runtime.fair_thread import Slice

MOST_AT_ONCE = 1000
_CHANGES = "changes of suppressions"
_Address = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=320)]


class SuppressionView(Document):
    """A suppressed address and the reason; ``email`` null: it was erased, only its hash is known.

    ``active`` false: soft bounces are only counted so far.
    """

    email: str | None
    reason: SuppressionReason
    active: bool
    bounces: int
    created_at: Moment
    expires_at: Moment | None


class SuppressionPage(PageDocument):
    """Suppressions, newest first."""

    items: list[SuppressionView]


class SuppressionQuestion(PageQuestion):
    """A page of the list, or one address."""

    email: str | None = Field(default=None, max_length=320)


class WhichAddress(Question):
    """One address, in any case."""

    email: _Address


class NewSuppressions(Question):
    """Addresses to suppress; without a time, permanently."""

    emails: Annotated[tuple[_Address, ...], FailFast()] = Field(
        min_length=1, max_length=MOST_AT_ONCE
    )
    expires_at: Time | None = Field(
        default=None, description="ISO 8601 with a time zone, in the future."
    )


class SuppressionCount(Document):
    """The number of suppressed addresses."""

    count: int


@dataclass
class SuppressionEndpoints(Endpoints):
    """Endpoints for the suppressions of the tenant that ``whose`` finds."""

    _suppressions: Suppressions
    _whose: Whose
    _most: int
    _changes: PerMinute[TenantId]

    def __post_init__(self) -> None:
        """Find where they belong."""
        self.prefix = self._whose.prefix

    @Endpoint(
        "GET",
        "/suppressions",
        "List suppressed addresses",
        SuppressionPage,
        query=SuppressionQuestion,
    )
    async def list(self, request: Request) -> Response:
        """Suppressions, newest first; an address is listed once for each reason."""
        tenant = await self._whose.tenant_of(request)
        asked = read_query(request, SuppressionQuestion)
        page = await self._suppressions.list(
            tenant, email=asked.email, cursor=asked.after, limit=asked.limit
        )
        return SuppressionPage.response(page, view)

    @Endpoint("PUT", "/suppressions", "Suppress addresses", SuppressionCount, reads=NewSuppressions)
    async def put(self, request: Request) -> Response:
        """Suppress addresses, all or none, with reason ``manual``: new messages to them fail with ``SUPPRESSED``.

        422 ``STORAGE_LIMIT`` if the tenant would have more than ``storage.suppressions``. Limited by
        ``api.suppression_changes_per_minute``.
        """
        tenant = await self._whose.tenant_of(request)
        asked = await read_question(request, NewSuppressions)
        self._changes.count(tenant, _CHANGES, len(asked.emails))
        count = await suppress(self._suppressions, tenant, asked, most=self._most)
        return SuppressionCount(count=count).as_response()

    @Endpoint(
        "DELETE",
        "/suppressions",
        "Write to an address again",
        status=204,
        query=WhichAddress,
        refuses=(404,),
    )
    async def remove(self, request: Request) -> Response:
        """Remove an address, whatever the reason; another bounce or complaint suppresses it again.

        Limited by ``api.suppression_changes_per_minute``.
        """
        tenant = await self._whose.tenant_of(request)
        asked = read_query(request, WhichAddress)
        self._changes.count(tenant, _CHANGES)
        if not await self._suppressions.remove([asked.email], tenant=tenant):
            raise not_found("suppression")
        return Response(status_code=204)


async def suppress(
    suppressions: Suppressions, tenant: TenantId, asked: NewSuppressions, *, most: int
) -> int:
    """Suppress the addresses of a tenant, all or none, and return their number."""
    manual, until = SuppressionReason.MANUAL, asked.expires_at
    new = [
        NewSuppression(each, manual, None, until, is_normal=True) for each in await _judged(asked)
    ]
    return stored(await suppressions.put(new, tenant=tenant, most=most))


async def _judged(asked: NewSuppressions) -> list[str]:
    """The addresses in normal form; `InvalidMessage` if one is not valid."""
    if asked.expires_at is not None and asked.expires_at <= datetime.now(UTC):
        raise bad_value("expiresAt", "is in the past: use DELETE to end a suppression")
    if asked.expires_at is not None and asked.expires_at > LATEST:
        raise bad_value("expiresAt", f"must not be after {LATEST:%Y-%m-%d}")
    normal: list[str] = []
    faults: list[FieldError] = []
    turn = Slice()
    for index, each in enumerate(asked.emails):
        judged = judge_address(each)
        if judged is not None:
            normal.append(judged)
        else:
            faults.append(FieldError(f"emails.{index}", "is not an e-mail address"))
            if len(faults) == MOST_FAULTS:
                break
        if turn.spend(len(each)):
            await turn.pause()
    if faults:
        raise InvalidMessage(faults)
    return normal


def view(suppression: Suppression) -> SuppressionView:
    """One entry of the list."""
    return SuppressionView.of(suppression, email=suppression.address, active=suppression.is_active)
