"""E-mails on their way from HTTP into the ledger, and the refusals of the ledger."""

from typing import Protocol

from starlette.requests import Request

from carteiro.api.in_flight import SHARE, Share
from carteiro.api.refusal import Refusal, of_invalid, over_limit
from carteiro.config import Settings
from carteiro.errors import InvalidMessage, NotAccepted
from carteiro.model import ApiLimits, Charged, KeyConflict, OverLimit, Tenant
from carteiro.observability.metrics import Metrics, Tally
from carteiro.observability.tracing import Tracing
from carteiro.path.accept import Accepting
from carteiro.ports import Backend


class Office(Protocol):
    """The parts of the library that the API needs."""

    backend: Backend
    settings: Settings
    tally: Tally
    metrics: Metrics
    accepting: Accepting
    tracing: Tracing | None


class Intake:
    """Limits and settings for submissions over HTTP."""

    def __init__(self, office: Office) -> None:
        self.accepting = office.accepting
        self.relay_headers = office.settings.delivery.allowed_relay_headers
        self._tenants = office.backend.tenants
        self._usual_limits = office.settings.api.limits

    def limits_of(self, tenant: Tenant) -> ApiLimits | None:
        """The limits that a tenant's e-mails count against, if it has any."""
        limits = tenant.limits or self._usual_limits
        return limits if limits.has_any else None

    async def charge(self, request: Request, tenant: Tenant, refused: int) -> Charged:
        """Count refused e-mails against the tenant's limits, as if they were accepted; waits for a turn to write."""
        limits = self.limits_of(tenant)
        if limits is None:
            return Charged(0)
        share: Share = request.scope[SHARE]
        await share.write()
        return await self._tenants.charge(tenant.id, refused, limits=limits)

    async def charge_one(self, request: Request, tenant: Tenant) -> None:
        """Count one; a `Refusal` if it is over the limits."""
        over = (await self.charge(request, tenant, 1)).over
        if over is not None:
            raise over_limit(over)


def refused(answer: KeyConflict | OverLimit | NotAccepted) -> Refusal:
    """The refusal of an e-mail that was not accepted."""
    match answer:
        case KeyConflict():
            return Refusal(409, "The Idempotency-Key was used for another e-mail")
        case OverLimit():
            return over_limit(answer)
        case NotAccepted(fields):
            return of_invalid(InvalidMessage(fields))
