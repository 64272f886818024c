"""How e-mails get from HTTP into the ledger, and how each answer of the ledger is told."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from carteiro.api.refusal import Refusal, of_invalid, over_limit
from carteiro.config import Settings
from carteiro.email.message import Email
from carteiro.email.submission import Posting, key_for
from carteiro.errors import InvalidMessage, NotAccepted
from carteiro.model import (
    Accepted,
    ApiLimits,
    Charged,
    IdempotencyKey,
    KeyConflict,
    OverLimit,
    QueueRow,
    Replayed,
    Tenant,
    value,
)
from carteiro.observability.metrics import Metrics, Tally
from carteiro.ports import Backend

PostAnswer: TypeAlias = Accepted | Replayed | KeyConflict | OverLimit


class Office(Protocol):
    """What the API needs of the library: an open store, its settings, and ways to accept."""

    @property
    def backend(self) -> Backend:
        """The ports of the store."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        ...

    @property
    def tally(self) -> Tally:
        """Where requests are counted."""
        ...

    @property
    def metrics(self) -> Metrics:
        """What can be scraped."""
        ...

    async def accept_email(
        self,
        email: Email,
        *,
        tenant: Tenant,
        request_id: str,
        key: IdempotencyKey | None = None,
        limits: ApiLimits | None = None,
    ) -> PostAnswer:
        """Commit one judged e-mail of a known tenant; a caller that goes away does not undo it.

        `InvalidMessage` if it cannot be accepted: its template is rendered here, its From is judged.
        """
        ...

    async def accept_emails(self, postings: Sequence[Posting]) -> list[PostAnswer | NotAccepted]:
        """Commit many of them in one go; an answer for each, in order."""
        ...


@value
class Item:
    """One judged e-mail, and what its tenant calls the request."""

    email: Email
    key: str | None
    row: QueueRow | None = None  # of the table queue


class Intake:
    """Hands e-mails in under their keys, counted by their tenant's limits."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._usual_limits = office.settings.api.limits
        self.relay_headers = office.settings.delivery.allowed_relay_headers

    async def one(self, item: Item, *, tenant: Tenant, request_id: str) -> PostAnswer:
        """Answer after the commit; `InvalidMessage` if it cannot be accepted."""
        posting = self._posting(item, tenant, request_id)
        return await self._office.accept_email(
            posting.email,
            tenant=tenant,
            request_id=request_id,
            key=posting.key,
            limits=posting.limits,
        )

    async def charge(self, tenant: Tenant, refused: int) -> Charged:
        """Count e-mails that were refused against the tenant's limits, as if they had been accepted."""
        limits = tenant.limits or self._usual_limits
        if not limits.has_any:
            return Charged(0)
        return await self._office.backend.tenants.charge(tenant.id, refused, limits=limits)

    async def charge_one(self, tenant: Tenant) -> None:
        """Count one; a `Refusal` if it is over the limits, as it would be had it been well-formed."""
        over = (await self.charge(tenant, 1)).over
        if over is not None:
            raise over_limit(over)

    async def many(
        self, items: Sequence[Item], *, tenant: Tenant, request_id: str
    ) -> list[PostAnswer | NotAccepted]:
        """Answer for each, in order, after the one commit of those that can be accepted."""
        postings = [self._posting(each, tenant, request_id) for each in items]
        return await self._office.accept_emails(postings)

    def _posting(self, item: Item, tenant: Tenant, request_id: str) -> Posting:
        return Posting(
            item.email,
            tenant,
            request_id,
            None if item.key is None else key_for(item.key, item.email),
            tenant.limits or self._usual_limits,
            item.row,
        )


def refused(answer: KeyConflict | OverLimit | NotAccepted) -> Refusal:
    """How the client is told that an e-mail was not accepted."""
    match answer:
        case KeyConflict():
            return Refusal(409, "The Idempotency-Key stands for another e-mail")
        case OverLimit():
            return over_limit(answer)
        case NotAccepted(fields):
            return of_invalid(InvalidMessage(fields))
