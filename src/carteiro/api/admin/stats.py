"""Endpoint of figures: states, depths, dead letters, providers."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.reading import Question, read_query
from carteiro.errors import QueueAway
from carteiro.model import DeadFilter, State
from carteiro.ports import Backend


class DepthView(Document):
    """The number of jobs of one kind in the queue."""

    kind: str
    unfinished: int
    in_flight: int
    oldest_due_at: Moment | None


class TenantCount(Document):
    """The number of dead letters of a tenant."""

    company_id: str
    count: int


class DeadLetterSizes(Document):
    """The number of dead letters, by reason, and for the tenants that have the most."""

    total: int
    by_reason: dict[str, int]
    by_company: list[TenantCount]


class RateView(Document):
    """The rate limit of a provider over all processes, in calls a second: now, and at most; null: no limit.

    ``isOpen``: its circuit is open in the process that reported last; ``trouble``: why it opened last, null: never.
    """

    provider: str
    rate: float | None
    ceiling: float | None
    processes: int
    is_open: bool
    trouble: str | None
    trouble_at: Moment | None


class Stats(Document):
    """Figures of the whole store; ``depths`` null: the queue, which counts them, is unreachable."""

    states: dict[State, int]
    depths: list[DepthView] | None
    dead_letters: DeadLetterSizes
    providers: list[RateView]


class StatsQuestion(Question):
    """The number of tenants to name."""

    top: int = Field(default=10, ge=1, le=100)


class StatsEndpoints(Endpoints):
    """Endpoint of administrators for figures."""

    def __init__(self, ports: Backend) -> None:
        self._reading = ports.reading
        self._dead_letters = ports.dead_letters
        self._rates = ports.rates

    @Endpoint("GET", "/admin/v1/stats", "See the figures", Stats, query=StatsQuestion)
    async def stats(self, request: Request) -> Response:
        """Counts the whole ledger: do not ask for it every second."""
        asked = read_query(request, StatsQuestion)
        total, largest = await self._dead_letters.sizes(top=asked.top)
        by_company = [TenantCount(company_id=tenant, count=count) for tenant, count in largest]
        groups = await self._dead_letters.group("reason", DeadFilter())
        by_reason = {group.key: group.count for group in groups}
        stats = Stats(
            states=dict(await self._reading.states()),
            depths=await self._depths(),
            dead_letters=DeadLetterSizes(total=total, by_reason=by_reason, by_company=by_company),
            providers=[RateView.of(each) for each in await self._rates.show()],
        )
        return stats.as_response(nulls=True)

    async def _depths(self) -> list[DepthView] | None:
        try:
            return [DepthView.of(each) for each in await self._reading.depths()]
        except QueueAway:
            return None
