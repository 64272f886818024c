"""The page of a process of the ticket lane: metrics for Prometheus, and health."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from carteiro.cli.process import Part
from carteiro.cli.server import http_server, listen
from carteiro.config import Settings
from carteiro.observability.metrics import CONTENT_TYPE

_GRACE = timedelta(seconds=1)  # a scrape that is cut off is made again
_ADVICE = "tickets.metrics_port (CARTEIRO_TICKETS_METRICS_PORT) chooses another port: each process needs its own"


def page_part(
    settings: Settings,
    figures: Callable[[], bytes],
    waits_for: Callable[[], str],
    *,
    paused: Callable[[], Sequence[str]] = tuple,
) -> Part:
    """``/metrics``, ``/health/live`` and ``/health/ready``; not ready while it waits for a server.

    Paused types are named there, too; other types continue, so it stays ready.
    """

    async def metrics(_: Request) -> Response:
        return Response(figures(), media_type=CONTENT_TYPE)

    async def live(_: Request) -> Response:
        return PlainTextResponse("live\n")

    async def ready(_: Request) -> Response:
        waiting = waits_for()
        said = [f"waiting: {waiting}" if waiting else "ready", *map("paused: {}".format, paused())]
        return PlainTextResponse(
            "".join(f"{line}\n" for line in said), status_code=503 if waiting else 200
        )

    page = Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/health/live", live),
            Route("/health/ready", ready),
        ]
    )
    host, port = settings.tickets.metrics_host, settings.tickets.metrics_port
    listener = listen(host, port, advice=_ADVICE)
    return http_server(page, listener, grace=_GRACE, bounds=settings.api)
