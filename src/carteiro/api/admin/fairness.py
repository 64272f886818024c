"""The endpoints of fairness: how tenants fare, and how they take turns."""

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
    """How a tenant fares among the others, for one kind of job."""

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
    """How tenants fare, least served first."""

    items: list[StandingView]


class StandingsQuestion(Question):
    """Of which kind of job, and of how many tenants."""

    kind: str = Field(default=EMAIL, min_length=1, max_length=255)
    limit: int = Field(default=1000, ge=1, le=100_000)


class FairnessDocument(Question):
    """How tenants take turns; what is not given is as in the default settings."""

    enable_round_robin: bool = True
    max_jobs_per_tenant_batch: int = Field(default=3, ge=1, le=_LARGEST)
    round_robin_base_priority: int = Field(default=5, ge=1, le=_LARGEST)
    priority_increment_per_round: int = Field(default=1, ge=0, le=_LARGEST)
    max_round_robin_priority: int = Field(default=1, ge=1, le=_LARGEST)


class FairnessView(Document):
    """How tenants take turns; ``isOverride``: it was changed at run time, for all workers.

    Otherwise it is what the settings of the process that answers say.
    """

    enable_round_robin: bool
    max_jobs_per_tenant_batch: int
    round_robin_base_priority: int
    priority_increment_per_round: int
    max_round_robin_priority: int
    is_override: bool


class FairnessEndpoints(Endpoints):
    """What administrators can see and change of fairness."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    @Endpoint(
        "GET", "/admin/v1/standings", "See how tenants fare", Standings, query=StandingsQuestion
    )
    async def standings(self, request: Request) -> Response:
        """Tenants with work or history, least served first."""
        asked = read_query(request, StandingsQuestion)
        found = await self._tenants.standings(KindName(asked.kind))
        items = [StandingView.of(each, company_id=each.tenant) for each in found[: asked.limit]]
        return Standings(items=items).as_response(nulls=True)

    @Endpoint("GET", _PATH, "See how tenants take turns", FairnessView)
    async def show(self, _: Request) -> Response:
        """What is in force, and whether it was changed at run time."""
        fairness, is_override = await self._tenants.fairness()
        return FairnessView.of(fairness, is_override=is_override).as_response()

    @Endpoint("PUT", _PATH, "Change how tenants take turns", status=204, reads=FairnessDocument)
    async def tune(self, request: Request) -> Response:
        """For all workers, from now on, until it is changed again."""
        asked = await read_question(request, FairnessDocument)
        await self._tenants.tune(Fairness(**asked.model_dump()))
        return Response(status_code=204)

    @Endpoint("DELETE", _PATH, "Take turns as configured again", status=204)
    async def untune(self, _: Request) -> Response:
        """Back to what each worker's settings say."""
        await self._tenants.tune(None)
        return Response(status_code=204)
