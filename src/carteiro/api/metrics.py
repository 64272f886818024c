"""The page for Prometheus on the API's own address: for administrators, because it names tenants."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.observability.metrics import CONTENT_TYPE, Metrics


class MetricsEndpoints(Endpoints):
    """What a scraper asks for. Behind a proxy every client looks local, so being local opens nothing."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @Endpoint("GET", "/metrics", "Scrape the metrics", answers_with=PlainTextResponse)
    async def show(self, _: Request) -> Response:
        """What this process counted and what the store shows, in Prometheus' text format."""
        return Response(await self._metrics.exposition(), media_type=CONTENT_TYPE)
