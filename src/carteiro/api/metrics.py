"""The page for Prometheus on the API's own address: for administrators, because it names tenants."""

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from carteiro.api.endpoint import Endpoint
from carteiro.api.key_ring import KeyRing
from carteiro.observability.metrics import CONTENT_TYPE, Metrics


class MetricsEndpoints:
    """What a scraper asks for. Behind a proxy every client looks local, so being local opens nothing."""

    def __init__(self, metrics: Metrics, keys: KeyRing) -> None:
        self._metrics = metrics
        self._keys = keys

    def endpoints(self) -> Iterable[Endpoint]:
        """The one there is."""
        yield Endpoint(
            "GET",
            "/metrics",
            self.show,
            "Scrape the metrics",
            None,
            answers_with=PlainTextResponse,
        )

    async def show(self, request: Request) -> Response:
        """What this process counted and what the store shows, in Prometheus' text format."""
        await self._keys.administrator_of(request)
        return Response(await self._metrics.exposition(), media_type=CONTENT_TYPE)
