"""The metrics page on its own address, as a part of a process."""

from collections.abc import Iterable
from datetime import timedelta

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carteiro.app import Carteiro
from carteiro.cli.process import Part
from carteiro.cli.server import http_server, listen
from carteiro.observability.metrics import CONTENT_TYPE, Metrics
from carteiro.observability.readiness import Role
from carteiro.ports import Backend

_GRACE = timedelta(seconds=1)  # Prometheus repeats an interrupted scrape
_ADVICE = "metrics.port (CARTEIRO_METRICS_PORT) chooses another port: each process needs its own"


def metrics_parts(post: Carteiro, *, answers_for: Role | None = None) -> list[Part]:
    """The metrics page, listening from now on; nothing if the settings name no address.

    A process without another address reports its readiness there, for its role.
    """
    settings = post.settings
    if not settings.metrics.host:
        return []
    listener = listen(settings.metrics.host, settings.metrics.port, advice=_ADVICE)
    health = () if answers_for is None else _health(post.backend, answers_for)
    page = metrics_page(post.metrics, health)
    return [http_server(page, listener, grace=_GRACE, bounds=settings.api)]


def metrics_page(metrics: Metrics, health: Iterable[Route] = ()) -> Starlette:
    """``/metrics``, optionally ``/health``, and nothing else; no token is needed."""

    async def show(_: Request) -> Response:
        return Response(await metrics.exposition(), media_type=CONTENT_TYPE)

    return Starlette(routes=[Route("/metrics", show), *health])


def _health(backend: Backend, role: Role) -> list[Route]:
    from carteiro.api.health import HealthChecks  # noqa: PLC0415 - expensive, and only for servers

    checks = HealthChecks(backend, [role]).endpoints()
    return [Route(each.path, call) for each, call in checks]
