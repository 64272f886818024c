"""Endpoints of fairness: the standing of tenants, and the rules of their turns."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.documents import Document, Moment
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.reading import Question, read_query, read_question
from carteiro.model import EMAIL, Fairness, KindName
from carteiro.ports import Tenants

_PATH = "/admin/v1/fairness"
_LARGEST = 1_000_000


class StandingView(Document):
    """The standing of a tenant among the others, for one kind of job."""

    company_id: str
    kind: str
    last_processed_at: Moment | None
    rounds_without_processing: int
    current_priority: int
    total_processed: int
    consecutive_batch_count: int
    waiting: int
    in_flight: int


class Standings(Document):
    """The standing of tenants, least served first."""

    items: list[StandingView]


class StandingsQuestion(Question):
    """Kind of job, and maximum number of tenants."""

    kind: str = Field(default=EMAIL, min_length=1, max_length=255)
    limit: int = Field(default=1000, ge=1, le=100_000)


class FairnessDocument(Question):
    """The rules of turns; a field that is not given has the default of the settings."""

    enable_round_robin: bool = True
    max_jobs_per_tenant_batch: int = Field(default=3, ge=1, le=_LARGEST)
    round_robin_base_priority: int = Field(default=5, ge=1, le=_LARGEST)
    priority_increment_per_round: int = Field(default=1, ge=0, le=_LARGEST)
    max_round_robin_priority: int = Field(default=1, ge=1, le=_LARGEST)


class FairnessView(Document):
    """The rules of turns; ``isOverride``: they were changed at run time, for all workers.

    Otherwise they are the settings of the process that answers.
    """

    enable_round_robin: bool
    max_jobs_per_tenant_batch: int
    round_robin_base_priority: int
    priority_increment_per_round: int
    max_round_robin_priority: int
    is_override: bool


class FairnessEndpoints(Endpoints):
    """Endpoints of administrators for fairness."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    @Endpoint(
        "GET",
        "/admin/v1/standings",
        "Show the standing of tenants",
        Standings,
        query=StandingsQuestion,
    )
    async def standings(self, request: Request) -> Response:
        """Tenants with work or history, least served first."""
        asked = read_query(request, StandingsQuestion)
        found = await self._tenants.standings(KindName(asked.kind))
        items = [StandingView.of(each, company_id=each.tenant) for each in found[: asked.limit]]
        return Standings(items=items).as_response(nulls=True)

    @Endpoint("GET", _PATH, "Show how tenants take turns", FairnessView)
    async def show(self, _: Request) -> Response:
        """The rules in force; ``isOverride`` if they were changed at run time."""
        fairness, is_override = await self._tenants.fairness()
        return FairnessView.of(fairness, is_override=is_override).as_response()

    @Endpoint("PUT", _PATH, "Change how tenants take turns", status=204, reads=FairnessDocument)
    async def tune(self, request: Request) -> Response:
        """Change the rules for all workers, from now on, until they are changed again."""
        asked = await read_question(request, FairnessDocument)
        await self._tenants.tune(Fairness(**asked.model_dump()))
        return Response(status_code=204)

    @Endpoint("DELETE", _PATH, "Take turns as configured again", status=204)
    async def untune(self, _: Request) -> Response:
        """Return to the settings of each worker."""
        await self._tenants.tune(None)
        return Response(status_code=204)
