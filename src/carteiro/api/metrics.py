"""The metrics page on the API's address: for administrators, because it names tenants."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.observability.metrics import CONTENT_TYPE, Metrics


class MetricsEndpoints(Endpoints):
    """The metrics page. Behind a proxy every client looks local, so a local address needs a token, too."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @Endpoint("GET", "/metrics", "Scrape the metrics", answers_with=PlainTextResponse)
    async def show(self, _: Request) -> Response:
        """The metrics of this process and the store, in Prometheus' text format."""
        return Response(await self._metrics.exposition(), media_type=CONTENT_TYPE)
